"""Steps of the wall clock, detected with a monotonic clock.

Always true: a deadline does not count time that the wall clock skipped. A machine that slept for
an hour, or whose clock was set forward by one, has not waited for an hour.

May be false: that a step is dated right. It is dated to the next call of :meth:`forward_s`.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.domain.ids import Clock

LEAST_S = 1.0
"""Smaller steps are ignored, since clocks are slewed all the time."""


class ClockSteps:
    """Records by how much the wall clock went ahead of the monotonic one, and when."""

    def __init__(self, clock: Clock, steady_s: Callable[[], float]) -> None:
        self._clock = clock
        self._steady_s = steady_s
        self._last = (clock(), steady_s())
        self._steps: list[tuple[float, float]] = []

    def forward_s(self, within_s: float) -> float:
        """How far the wall clock went ahead within the last ``within_s`` monotonic seconds."""
        wall, steady_s = self._clock(), self._steady_s()
        ahead_s = (wall - self._last[0]).total_seconds() - (steady_s - self._last[1])
        self._last = (wall, steady_s)
        if ahead_s > LEAST_S:
            self._steps.append((steady_s, ahead_s))
        self._steps = [each for each in self._steps if steady_s - each[0] < within_s]
        return sum(step_s for _, step_s in self._steps)
