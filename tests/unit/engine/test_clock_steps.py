"""Steps of the wall clock: time that seems to have passed, but has not."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.engine.clock_steps import ClockSteps

WITHIN_S = 600.0


class Clocks:
    """A wall clock that can be set, and a steady one that cannot."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive
        self.steady_s = 1000.0
        self.steps = ClockSteps(lambda: self.wall, lambda: self.steady_s)

    def pass_by(self, seconds: float) -> float:
        """Let time pass; returns the forward step that still counts."""
        self.wall += timedelta(seconds=seconds)
        self.steady_s += seconds
        return self.steps.forward_s(WITHIN_S)


def test_time_that_passes_is_no_step() -> None:
    clocks = Clocks()
    assert clocks.pass_by(10) == 0
    clocks.wall += timedelta(seconds=0.5)
    assert clocks.pass_by(100_000) == 0


def test_a_step_forward_counts_until_all_from_before_it_is_late() -> None:
    clocks = Clocks()
    clocks.wall += timedelta(hours=1)
    assert clocks.pass_by(10) == 3600
    assert clocks.pass_by(WITHIN_S - 1) == 3600
    assert clocks.pass_by(2) == 0


def test_forward_steps_add_up_and_a_backward_step_does_not_count() -> None:
    clocks = Clocks()
    clocks.wall += timedelta(minutes=1)
    assert clocks.pass_by(10) == 60
    clocks.wall -= timedelta(hours=1)
    assert clocks.pass_by(10) == 60
    clocks.wall += timedelta(hours=1)
    assert clocks.pass_by(10) == 3660
