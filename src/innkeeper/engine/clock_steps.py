"""Steps of the wall clock, detected with a monotonic clock.

Time that the wall clock skipped must not count towards a deadline. After a machine slept for an
hour, or its clock was set forward by an hour, an order has not really waited that hour.

The recorded time of a step may be late, because a step is noticed, and recorded, only at the next
call of :meth:`ClockSteps.forward_s`.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.domain.ids import Clock

LEAST_S = 1.0
"""Shorter steps are ignored, because clocks are corrected all the time."""


class ClockSteps:
    """Records when, and how far, the wall clock jumped ahead of the monotonic clock."""

    def __init__(self, clock: Clock, steady_s: Callable[[], float]) -> None:
        self._clock = clock
        self._steady_s = steady_s
        self._last = (clock(), steady_s())
        self._steps: list[tuple[float, float]] = []

    def forward_s(self, within_s: float) -> float:
        """Return the seconds that the wall clock skipped in the last ``within_s`` seconds."""
        wall, steady_s = self._clock(), self._steady_s()
        ahead_s = (wall - self._last[0]).total_seconds() - (steady_s - self._last[1])
        self._last = (wall, steady_s)
        if ahead_s > LEAST_S:
            self._steps.append((steady_s, ahead_s))
        self._steps = [each for each in self._steps if steady_s - each[0] < within_s]
        return sum(step_s for _, step_s in self._steps)
