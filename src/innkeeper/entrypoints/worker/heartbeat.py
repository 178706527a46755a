"""Sends a worker's heartbeat to its supervisor every second.

Always true: the event loop itself sends the heartbeats, so a blocked event loop or a stopped
process sends none. Each heartbeat also reports whether the writer thread makes progress.

A thread that waits for the database does not count as stuck, even if it waits long. Drivers have
their own timeouts, and killing the waiting process would not speed up a fail-over.

A thread that counts as stuck might still continue later. A thread counts as stuck if the thread
makes no progress outside the database for the maximum time.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import Protocol

import structlog

LOG = structlog.get_logger("innkeeper.worker")

BEAT_S = 1.0
"""The interval of heartbeats."""
WELL, STUCK = b".", b"!"
DATABASE = ("sqlalchemy.", "innkeeper.store.prepared")
"""The modules that call the database. A thread inside one of them may wait for the database."""


class WatchedThread(Protocol):
    """A thread that executes work from a queue."""

    @property
    def progress(self) -> int | None:
        """A number that is different for each piece of work, or ``None`` if there is no work."""

    @property
    def thread_id(self) -> int | None:
        """The interpreter's id of the thread, or ``None`` if the thread has not started."""


class StuckThreadDetector:
    """Detects that a thread makes no progress. Call :meth:`look` once a second.

    The detector counts checks instead of clock time. So it ignores the time while the machine is
    suspended or the process is stopped.
    """

    def __init__(self, working: WatchedThread, after_s: float) -> None:
        self._working = working
        self._looks_max = after_s / BEAT_S
        self._seen: int | None = None
        self._looks = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the thread was stuck at the last check."""
        return self._looks >= self._looks_max

    def look(self) -> bool:
        """Check the thread once. Returns whether it is stuck."""
        progress = self._working.progress
        frame = self._frame()
        if progress is None or progress != self._seen or _is_in_database(frame):
            self._seen, self._looks = progress, 0
            return False
        was_stuck = self.is_stuck
        self._looks += 1
        if self.is_stuck and not was_stuck:
            stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
            LOG.error("decisions_stuck", stack=stack)
        return self.is_stuck

    def _frame(self) -> FrameType | None:
        number = self._working.thread_id
        # This does not slow down the watched thread.
        return None if number is None else sys._current_frames().get(number)


def _is_in_database(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(DATABASE):
            return True
        frame = frame.f_back
    return False


class Heartbeat:
    """Writes heartbeats to the pipe ``into``, if there is one."""

    def __init__(self, detector: StuckThreadDetector, into: int | None = None) -> None:
        self._detector = detector
        self._into = into
        if into is not None:
            # Child processes must not inherit the pipe, because they would keep it open.
            os.set_inheritable(into, False)
            os.set_blocking(into, False)

    def beat(self) -> None:
        """Check the thread, and write a heartbeat."""
        is_stuck = self._detector.look()
        if self._into is None:
            return
        # A full pipe or the end of the supervisor must not stop the worker.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._into, STUCK if is_stuck else WELL)
