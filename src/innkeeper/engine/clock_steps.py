"""Steps of the wall clock, found out by a clock that has none.

Always true: time that only seemed to pass counts for nobody's being late. A machine that slept
for an hour, or whose clock was set forward by one, has not waited for an hour.

May be false: that a step is told at once. It is dated to when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.domain.ids import Clock

LEAST_S = 1.0
"""Clocks are slewed all the time; less than this is none of our business."""


class ClockSteps:
    """Remembers by how much the wall clock went ahead of the steady one, and when."""

    def __init__(self, clock: Clock, steady_s: Callable[[], float]) -> None:
        self._clock = clock
        self._steady_s = steady_s
        self._last = (clock(), steady_s())
        self._steps: list[tuple[float, float]] = []

    def forward_s(self, within_s: float) -> float:
        """How much the wall clock went ahead within the last so many true seconds."""
        wall, steady_s = self._clock(), self._steady_s()
        ahead_s = (wall - self._last[0]).total_seconds() - (steady_s - self._last[1])
        self._last = (wall, steady_s)
        if ahead_s > LEAST_S:
            self._steps.append((steady_s, ahead_s))
        self._steps = [each for each in self._steps if steady_s - each[0] < within_s]
        return sum(step_s for _, step_s in self._steps)
