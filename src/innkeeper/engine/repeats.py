"""The number and the pauses of retries in a thread that may block."""

from __future__ import annotations

import time
from threading import Event

from innkeeper.engine.retry import PASSING, REPEAT_WITHIN_S

JITTER_OF = 1_000


class Repeats:
    """Counts and paces the retries of one piece of work."""

    def __init__(self) -> None:
        self._begun_s = time.perf_counter()
        self._pauses = iter(PASSING.pauses_s)

    def wait(self) -> bool:
        """Block until the next attempt. Returns false at once if no further attempt is allowed."""
        pause_s = next(self._pauses, None)
        if pause_s is None or time.perf_counter() - self._begun_s > REPEAT_WITHIN_S:
            return False
        Event().wait(pause_s * (0.5 + _jitter()))
        return True


def _jitter() -> float:
    """Return a number from 0 to 1.

    It comes from a clock's last digits, so it differs by process.
    """
    return time.perf_counter_ns() // 100 % JITTER_OF / JITTER_OF
