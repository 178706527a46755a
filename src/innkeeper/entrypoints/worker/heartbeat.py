"""How a worker tells its supervisor, once a second, that it does its work.

Always true: the sign comes from the event loop itself, so there is none while that is stuck or
the process is stopped. The thread that decides is looked at each time: one that has begun
something, and gets nowhere, is told of.

Always true: to wait for the database is no standstill, however long. Drivers give up by
themselves, and a fail-over is not sped up by killing whoever waits for it.

May be false: that a thread which stands still is stuck for good. It has stood still, without a
look into the database, for as long as it was allowed to.
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
"""How often the sign is given."""
WELL, STUCK = b".", b"!"
DATABASE = ("sqlalchemy.", "innkeeper.store.prepared")
"""The modules of who speaks with databases: all waiting for one is done below them."""


class WatchedThread(Protocol):
    """A thread that takes work in and does it."""

    @property
    def progress(self) -> int | None:
        """Another number for each piece of work; ``None`` where nothing is to be done."""

    @property
    def thread_id(self) -> int | None:
        """The interpreter's number of the thread; ``None`` before it was started."""


class StuckThreadDetector:
    """Finds out that a thread gets nowhere; is asked once a second.

    What counts are looks, and not what a clock shows: a machine that slept, or a process that
    was stopped, has not looked.
    """

    def __init__(self, working: WatchedThread, after_s: float) -> None:
        self._working = working
        self._looks_max = after_s / BEAT_S
        self._seen: int | None = None
        self._looks = 0

    @property
    def is_stuck(self) -> bool:
        """Whether it was stuck at the last look."""
        return self._looks >= self._looks_max

    def look(self) -> bool:
        """Look once more; whether the thread is stuck."""
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
        # Costs the thread nothing, as anything that it would have to note down itself would.
        return None if number is None else sys._current_frames().get(number)


def _is_in_database(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(DATABASE):
            return True
        frame = frame.f_back
    return False


class Heartbeat:
    """Gives the sign, where there is somebody to see it; ``into`` is the writing end."""

    def __init__(self, detector: StuckThreadDetector, into: int | None = None) -> None:
        self._standing = detector
        self._into = into
        if into is not None:
            # For this process alone: what it starts would keep the pipe open.
            os.set_inheritable(into, False)
            os.set_blocking(into, False)

    def beat(self) -> None:
        """Look, and give the sign."""
        is_stuck = self._standing.look()
        if self._into is None:
            return
        # Full, with nobody there who reads it, or without anybody at all: no matter of ours.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._into, STUCK if is_stuck else WELL)
