"""Availability: free units over time, the earliest start, and the latest end."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.availability import earliest, free_units, latest_end
from innkeeper.scheduling.leases.stepping import Starts
from tests.support.minutes import MINUTE, Minutes, PlainHold, PlainHost, at

EIGHT = PlainHost({"VCPU": 8})
SLOT = {"VCPU": 2}
WORLD = Minutes(
    [EIGHT, PlainHost({"VCPU": 8}, leaves=80), PlainHost({"VCPU": 8}, usable=False)],
    [PlainHold(0, 10, 20), PlainHold(0, 30, 50, 3, SLOT), PlainHold(0, 40, 60, 1, SLOT)],
)


def over_time(demand: Demand, world: Minutes = WORLD, cleaning: int = 0) -> list[tuple[int, ...]]:
    """Return the number of free units over time, in minutes."""
    found = free_units(world.calendar(), demand, at(0), at(100), world.usable(), cleaning * MINUTE)
    return [((a - at(0)) // MINUTE, (b - at(0)) // MINUTE, units) for a, b, units in found]


def first_start(
    demand: Demand, length: int, after: int = 0, before: int = 100, cleaning: int = 0
) -> int | None:
    found = earliest(
        WORLD.calendar(),
        demand,
        Starts(at(after), at(before), length * MINUTE, cleaning * MINUTE),
        WORLD.usable(),
    )
    return None if found is None else (found - at(0)) // MINUTE


def test_free_units_change_with_starts_and_ends() -> None:
    assert over_time(Demand(1, 1)) == [
        (0, 10, 2),
        (10, 20, 1),
        (20, 30, 2),
        (30, 60, 1),
        (60, 80, 2),
        (80, 100, 1),
    ]
    assert over_time(Demand(1, 1, SLOT)) == [
        (0, 10, 8),
        (10, 20, 4),
        (20, 30, 8),
        (30, 40, 5),
        (40, 50, 4),
        (50, 60, 7),
        (60, 80, 8),
        (80, 100, 4),
    ]


def test_affinity_counts_on_one_host_and_anti_affinity_hosts() -> None:
    assert over_time(Demand(1, 1, SLOT, True)) == [(0, 100, 4)]
    assert over_time(Demand(1, 1, SLOT, False)) == [
        (0, 10, 2),
        (10, 20, 1),
        (20, 40, 2),
        (40, 50, 1),
        (50, 80, 2),
        (80, 100, 1),
    ]


def test_cleaning_time_is_not_free() -> None:
    assert over_time(Demand(1, 1), cleaning=4)[:4] == [
        (0, 6, 2),
        (6, 24, 1),
        (24, 26, 2),
        (26, 64, 1),
    ]
    assert over_time(Demand(1, 1), cleaning=6)[:2] == [(0, 4, 2), (4, 66, 1)]


def test_peaks_before_and_after_do_not_add_up_in_the_cleaning_time() -> None:
    world = Minutes([EIGHT], [PlainHold(0, 10, 20, 2, SLOT), PlainHold(0, 22, 30, 1, SLOT)])
    assert over_time(Demand(1, 1, SLOT), world, 5) == [
        (0, 5, 4),
        (5, 25, 2),
        (25, 35, 3),
        (35, 100, 4),
    ]


def test_no_host_may_be_left() -> None:
    required = ('["==", "$kind", "z"]',)
    assert over_time(Demand(1, 1, requirements=required)) == [(0, 100, 0)]
    assert over_time(Demand(1, 1, SLOT, True), Minutes([])) == [(0, 100, 0)]


def test_the_earliest_start_is_at_once_or_at_the_end_of_a_hold() -> None:
    two = Demand(2, 2)
    assert first_start(two, 10) == 0
    assert first_start(two, 11) == 60
    assert first_start(two, 10, after=1) == 20
    assert first_start(two, 9, after=1) == 1
    assert first_start(two, 20, after=21) == 60
    assert first_start(two, 21, after=21) is None
    assert first_start(two, 20, after=21, before=60) is None
    assert first_start(two, 20, after=21, before=61) == 60
    assert first_start(two, 20, after=61, before=61) is None
    assert first_start(Demand(3, 3), 1) is None


def test_the_earliest_start_respects_the_cleaning_time() -> None:
    assert first_start(Demand(2, 2), 8, after=3, cleaning=2) == 62
    assert first_start(Demand(2, 2), 6, after=3, cleaning=2) == 22
    assert first_start(Demand(5, 5, SLOT), 10, after=15, cleaning=0) == 20


def longest(
    demand: Demand, units: list[list[int]], end: int, limit: int = 100, cleaning: int = 0
) -> int:
    held = [(demand, np.array(units))]
    found = latest_end(WORLD.calendar(), held, at(end), at(limit), cleaning * MINUTE)
    return (found - at(0)) // MINUTE


def test_the_latest_end_is_before_the_next_hold_that_does_not_fit() -> None:
    assert longest(Demand(1, 1), [[0, 1]], 5) == 10
    assert longest(Demand(1, 1), [[0, 1]], 5, cleaning=2) == 8
    assert longest(Demand(1, 1), [[0, 1]], 9, cleaning=2) == 9
    assert longest(Demand(1, 1), [[0, 1]], 60) == 100
    assert longest(Demand(1, 1), [[0, 1]], 60, limit=70) == 70
    assert longest(Demand(1, 1), [[0, 1]], 60, limit=50) == 60
    assert longest(Demand(1, 1), [[1, 1]], 5, cleaning=7) == 80
    assert longest(Demand(1, 1), [[2, 1]], 5) == 100
    assert longest(Demand(1, 1, SLOT), [[0, 1]], 25) == 40
    assert longest(Demand(2, 2, SLOT), [[0, 2]], 25) == 30
    assert longest(Demand(2, 2, SLOT), [[0, 2]], 25, cleaning=2) == 28


def test_a_lease_without_hosts_can_be_extended() -> None:
    assert latest_end(WORLD.calendar(), [], at(0), at(9)) == at(9)


def test_own_holds_do_not_limit_the_end() -> None:
    held = [(Demand(1, 1), np.array([[0, 1]]))]
    assert latest_end(WORLD.calendar(), held, at(5), at(9), 0, {1}) == at(9)


def test_what_changes_at_the_end_is_not_shown() -> None:
    found = free_units(WORLD.calendar(), Demand(1, 1), at(10), at(20), WORLD.usable())
    assert found == [(at(10), at(20), 1)]


def test_an_earliest_start_is_a_whole_number_of_grains_or_the_first_moment() -> None:
    def first(after: int, grain: int) -> int | None:
        calendar, usable = WORLD.calendar(), WORLD.usable()
        two = Demand(2, 2)
        starts = Starts(at(after), at(100), MINUTE)
        return earliest(calendar, two, starts, usable, grain=grain * MINUTE)

    assert first(3, 7) == at(3)
    # Two hosts are free from 20 to 30, and from 60 to 80.
    assert first(15, 60) == at(60)
    assert at(60) % (60 * MINUTE) == 0
