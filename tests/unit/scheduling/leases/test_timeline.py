"""Usage over time: the holds that overlap a window, and the peaks in it."""

from __future__ import annotations

import numpy as np
import pytest

from innkeeper.domain.leases import UNITS_MAX
from innkeeper.scheduling.leases.timeline import Timeline, overlapping, slots, use
from tests.support.minutes import Minutes, PlainHold, PlainHost, at

EIGHT = PlainHost({"VCPU": 8})
TWO = {"VCPU": 2}


def shared(start: int, end: int, units: int = 1, reservation: int = 1) -> PlainHold:
    return PlainHold(0, start, end, units, TWO, reservation)


def peak(*holds: PlainHold, window: tuple[int, int] = (10, 20)) -> float:
    found = use(Minutes([EIGHT], holds).calendar(), at(window[0]), at(window[1]))
    return float(found.peaks["VCPU"][0])


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        pytest.param([shared(0, 10), shared(20, 30)], 0, id="they only touch the window"),
        pytest.param([shared(0, 11), shared(19, 30)], 2, id="one after the other"),
        pytest.param([shared(0, 15), shared(15, 30)], 2, id="an end is before a start"),
        pytest.param([shared(0, 16), shared(15, 30)], 4, id="at the same time"),
        pytest.param([shared(0, 30, 3)], 6, id="units add up"),
        pytest.param([shared(12, 14, 2), shared(13, 15), shared(16, 17, 2)], 6, id="in the middle"),
    ],
)
def test_the_peak_is_the_highest_sum(holds: list[PlainHold], expected: int) -> None:
    assert peak(*holds) == expected


def test_ignored_reservations_do_not_count() -> None:
    world = Minutes([EIGHT, EIGHT], [shared(0, 9), shared(0, 9, 1, 2), PlainHold(1, 0, 9)])
    found = use(world.calendar(), at(0), at(9), ignored={1})
    assert found.peaks["VCPU"].tolist() == [2, 0]
    assert (found.is_whole.tolist(), found.is_shared.tolist()) == ([False, False], [True, False])


def test_whole_hosts_and_amounts_are_told_apart() -> None:
    world = Minutes([EIGHT] * 3, [PlainHold(1, 0, 9), shared(0, 9)])
    found = use(world.calendar(), at(0), at(9))
    assert found.is_whole.tolist() == [False, True, False]
    assert found.is_shared.tolist() == [True, False, False]


def test_peaks_are_of_the_classes_that_are_named() -> None:
    calendar = Minutes([EIGHT], [shared(0, 9)]).calendar()
    assert use(calendar, at(0), at(9), classes=()).peaks == {}
    found = use(calendar, at(0), at(9), classes=("DISK_GB",))
    assert found.peaks["DISK_GB"].tolist() == [0]


def test_a_calendar_may_be_empty() -> None:
    found = use(Minutes([]).calendar(), at(0), at(9), classes=("VCPU",))
    assert (found.is_whole.size, found.peaks["VCPU"].size) == (0, 0)


def test_very_long_windows_are_sorted_as_well() -> None:
    """The product of rows and time may be larger than an integer."""
    calendar = Minutes([EIGHT, EIGHT], [PlainHold(1, 5, 9, 1, TWO), shared(3, 7)]).calendar()
    long = 2**62
    found = use(calendar, -long, long)
    assert found.peaks["VCPU"].tolist() == [2, 2]


def test_steps_follow_each_other() -> None:
    calendar = Minutes([EIGHT, EIGHT], [shared(2, 5), shared(3, 5), shared(5, 9)]).calendar()
    holds = overlapping(calendar, at(0), at(8))
    steps = Timeline(calendar, np.array([0, 1]), holds, at(0), at(8))
    assert steps.rows.tolist() == [0, 0, 0, 0, 1]
    assert steps.times.tolist() == [at(0), at(2), at(3), at(5), at(0)]
    assert steps.firsts.tolist() == [0, 4]
    assert steps.amounts("VCPU").tolist() == [0, 2, 4, 2, 0]
    assert steps.shares().tolist() == [0, 1, 2, 1, 0]
    assert steps.wholes().tolist() == [0] * 5


def test_units_fit_beside_used_amounts() -> None:
    calendar = Minutes([PlainHost({"VCPU": 8, "DISK_GB": 10}), EIGHT]).calendar()
    used = {"VCPU": np.array([1.0, 9.0])}
    assert slots(calendar, {"VCPU": 2}, used).tolist() == [3, 0]
    assert slots(calendar, {"VCPU": 2, "DISK_GB": 5}, used).tolist() == [2, 0]
    assert slots(calendar, {"VCPU": 4, "DISK_GB": 0}, {}).tolist() == [2, 2]
    assert slots(calendar, {"VGPU": 1}, {}).tolist() == [0, 0]
    assert slots(calendar, {}, {}).tolist() == [UNITS_MAX, UNITS_MAX]
