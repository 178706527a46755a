"""An event loop with a virtual clock: instead of sleeping, it moves the clock forward.

Always true: with equal seeds, tasks run in the same order at the same virtual times, because
nothing runs in other threads and nothing waits for the real time.
"""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Stuck(AssertionError):
    """All tasks wait for something that never happens."""


class _Selector(selectors.SelectSelector):
    """Moves the clock instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck("All tasks wait for something that never happens.")
        if not ready and timeout is not None and timeout > 0:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that runs as fast as the machine can."""

    def __init__(self) -> None:
        self._moving = _Selector()
        super().__init__(self._moving)

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._moving.now_s

    def now(self) -> datetime:
        """Return the virtual time of day."""
        return BEGIN + timedelta(seconds=self._moving.now_s)
