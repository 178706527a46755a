"""Hosts for the demands of a lease: which are chosen, and why others are not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.choosing import NO_CONSTRAINTS, ChosenUnits, Constraints, choose
from innkeeper.scheduling.leases.lacks import Lack
from tests.support.minutes import MINUTE, Minutes, PlainHold, PlainHost, at

EIGHT = PlainHost({"VCPU": 8, "MEMORY_MB": 8})
SLOT = {"VCPU": 2}
A, B = ('["==", "$kind", "a"]',), ('["==", "$kind", "b"]',)
WINDOW = (10, 11)


def found(
    world: Minutes,
    *demands: Demand,
    window: tuple[int, int] = WINDOW,
    preferred: Sequence[bool] | None = None,
    seed: int = 1,
    constraints: Constraints = NO_CONSTRAINTS,
) -> ChosenUnits | Lack:
    usable = world.usable()
    return choose(
        world.calendar(),
        demands,
        at(window[0]),
        at(window[1]),
        usable=usable,
        preferred=usable if preferred is None else np.array(preferred),
        seed=seed,
        constraints=constraints,
    )


def rows(world: Minutes, *demands: Demand, **more: object) -> list[dict[int, int]]:
    """Return the units by row for each demand."""
    result = found(world, *demands, **more)  # type: ignore[arg-type]
    assert isinstance(result, ChosenUnits), result
    return [dict(each.tolist()) for each in result.by_demand]


def lack(world: Minutes, *demands: Demand, **more: object) -> Lack:
    result = found(world, *demands, **more)  # type: ignore[arg-type]
    assert isinstance(result, Lack), result
    return result


# -- windows ---------------------------------------------------------------------------------


def test_slots_count_as_often_as_they_are_held() -> None:
    """A host with 8 VCPUs has no room left if it has 4 units of 2."""
    world = Minutes([EIGHT], [PlainHold(0, 0, 60, 4, SLOT)])
    assert lack(world, Demand(1, 1, {"VCPU": 1}), window=(30, 45)).in_use == 1
    assert rows(world, Demand(4, 4, SLOT), window=(60, 61)) == [{0: 4}]


@pytest.mark.parametrize(
    ("window", "cleaning", "fits"),
    [
        ((60, 120), 0, True),
        ((-60, 0), 0, True),
        ((59, 120), 0, False),
        ((-60, 1), 0, False),
        ((60, 120), 5, False),
        ((64, 120), 5, False),
        ((65, 120), 5, True),
        ((-60, -4), 5, False),
        ((-60, -5), 5, True),
    ],
)
def test_windows_are_half_open_and_cleaning_widens_them(
    window: tuple[int, int], cleaning: int, fits: bool
) -> None:
    world = Minutes([EIGHT], [PlainHold(0, 0, 60)])
    constraints = Constraints(cleaning * MINUTE)
    for demand in (Demand(1, 1), Demand(1, 1, SLOT)):
        result = found(world, demand, window=window, constraints=constraints)
        assert isinstance(result, ChosenUnits) == fits


def test_a_host_must_stay_in_the_freepool_until_the_end() -> None:
    world = Minutes([PlainHost({"VCPU": 8}, leaves=20)])
    assert rows(world, Demand(1, 1), window=(10, 20)) == [{0: 1}]
    assert lack(world, Demand(1, 1), window=(10, 21)).unusable == 1
    # Cleaning after the end is not needed for leases that cannot come.
    assert rows(world, Demand(1, 1), window=(10, 20), constraints=Constraints(5 * MINUTE))


# -- whole hosts -----------------------------------------------------------------------------


def test_whole_hosts_are_filled_up_to_the_maximum() -> None:
    world = Minutes([EIGHT] * 5)
    assert rows(world, Demand(1, 5)) == [dict.fromkeys(range(5), 1)]
    assert lack(world, Demand(6, 6)).fits == 5


def test_preferred_hosts_are_taken_first_and_others_by_chance() -> None:
    world = Minutes([EIGHT] * 6)
    preferred = [False, True, False, True, False, False]
    several = [rows(world, Demand(3, 3), preferred=preferred, seed=each)[0] for each in range(60)]
    assert all({1, 3} < set(each) for each in several)
    assert {row for each in several for row in each} == set(range(6))
    assert several[7] == rows(world, Demand(3, 3), preferred=preferred, seed=7)[0]


def test_demands_of_whole_hosts_are_distributed() -> None:
    """The first demand must leave the only host of kind b to the second demand."""
    world = Minutes([EIGHT, PlainHost({"VCPU": 8}, "b")])
    for seed in range(10):
        assert rows(world, Demand(1, 1), Demand(1, 1, requirements=B), seed=seed) == [
            {0: 1},
            {1: 1},
        ]
    refused = lack(world, Demand(1, 1), Demand(2, 2, requirements=B))
    assert (refused.demand, refused.fits, refused.unsuitable) == (1, 1, 1)


def test_all_demands_get_the_minimum_before_the_first_gets_more() -> None:
    world = Minutes([EIGHT] * 5)
    assert [len(each) for each in rows(world, Demand(1, 4), Demand(2, 4), Demand(1, 1))] == [
        2,
        2,
        1,
    ]
    assert [len(each) for each in rows(world, Demand(1, 2), Demand(1, 9))] == [2, 3]


# -- slots -----------------------------------------------------------------------------------

BUSY = [PlainHold(1, 0, 60, 1, SLOT), PlainHold(2, 0, 60, 3, SLOT)]


def test_hosts_in_use_are_filled_first_and_the_fullest_before() -> None:
    world = Minutes([EIGHT] * 4, BUSY)
    assert rows(world, Demand(1, 1, SLOT)) == [{2: 1}]
    assert rows(world, Demand(4, 4, SLOT)) == [{2: 1, 1: 3}]
    (spread,) = rows(world, Demand(6, 6, SLOT))
    assert len(spread) == 3
    assert (spread[1], spread[2]) == (3, 1)


def test_few_empty_hosts_are_taken_and_the_last_one_fits_best() -> None:
    sizes = (4, 20, 8, 12)
    world = Minutes([PlainHost({"VCPU": each}) for each in sizes])
    assert rows(world, Demand(3, 3, SLOT)) == [{2: 3}]
    assert rows(world, Demand(12, 12, SLOT)) == [{1: 10, 0: 2}]
    assert rows(world, Demand(13, 13, SLOT)) == [{1: 10, 2: 3}]
    assert rows(world, Demand(20, 22, SLOT)) == [{0: 2, 1: 10, 2: 4, 3: 6}]


def test_affinity_puts_all_units_on_the_host_with_the_least_to_spare() -> None:
    world = Minutes([EIGHT] * 3 + [PlainHost({"VCPU": 20})], BUSY)
    assert rows(world, Demand(2, 2, SLOT, True)) == [{1: 2}]
    assert rows(world, Demand(5, 5, SLOT, True)) == [{3: 5}]
    assert rows(world, Demand(2, 7, SLOT, True)) == [{3: 7}]
    refused = lack(world, Demand(11, 11, SLOT, True))
    assert (refused.fits, refused.too_small) == (10, 4)


def test_anti_affinity_needs_as_many_hosts_as_units() -> None:
    world = Minutes([EIGHT] * 4, [*BUSY, PlainHold(2, 0, 60, 1, SLOT)])
    assert rows(world, Demand(1, 1, SLOT, False)) == [{1: 1}]
    assert rows(world, Demand(1, 9, SLOT, False)) == [{0: 1, 1: 1, 3: 1}]
    refused = lack(world, Demand(4, 4, SLOT, False))
    assert (refused.fits, refused.in_use) == (3, 1)


def test_slots_of_several_demands_add_up() -> None:
    world = Minutes([EIGHT])
    demands = [Demand(1, 1, {"VCPU": 3}), Demand(1, 1, {"VCPU": 3})]
    assert rows(world, *demands) == [{0: 1}, {0: 1}]
    refused = lack(world, *demands, Demand(1, 1, {"VCPU": 3}))
    assert (refused.demand, refused.fits, refused.taken) == (2, 0, 1)


# -- both ------------------------------------------------------------------------------------


def test_whole_hosts_leave_hosts_to_slots() -> None:
    """Slots need the only host of kind b, or the large one."""
    large = PlainHost({"VCPU": 64})
    world = Minutes([EIGHT, PlainHost({"VCPU": 8}, "b")])
    assert rows(world, Demand(1, 1), Demand(1, 1, SLOT, None, B)) == [{0: 1}, {1: 1}]
    assert rows(world, Demand(1, 1, SLOT, None, B), Demand(1, 1)) == [{1: 1}, {0: 1}]
    world = Minutes([EIGHT, large])
    assert rows(world, Demand(1, 1), Demand(9, 9, SLOT)) == [{0: 1}, {1: 9}]


def test_large_units_may_be_placed_first() -> None:
    world = Minutes([EIGHT, PlainHost({"VCPU": 5})])
    demands = [Demand(4, 4, {"VCPU": 1}), Demand(1, 1, {"VCPU": 5}), Demand(1, 1, {"VCPU": 4})]
    assert rows(world, *demands) == [{0: 4}, {1: 1}, {0: 1}]


def test_extra_units_of_both_kinds_come_after_all_minimums() -> None:
    world = Minutes([EIGHT] * 3)
    whole, part = rows(world, Demand(1, 3), Demand(1, 9, SLOT))
    assert (len(whole), sum(part.values())) == (2, 4)
    part, whole = rows(world, Demand(1, 9, SLOT), Demand(1, 3))
    assert (len(whole), sum(part.values())) == (1, 8)


def test_a_lease_may_have_no_demands_and_the_freepool_no_hosts() -> None:
    assert rows(Minutes([EIGHT])) == []
    for demand in (Demand(1, 1), Demand(1, 1, SLOT), Demand(1, 1, SLOT, True)):
        assert lack(Minutes([]), demand) == Lack(0, 0, 0, 0, 0, 0, 0, 0, 0)
        assert lack(Minutes([]), demand, demand).fits == 0


# -- refusals --------------------------------------------------------------------------------


def test_each_host_is_counted_for_one_reason() -> None:
    hosts = [
        PlainHost({"VCPU": 8}, usable=False),
        PlainHost({"VCPU": 8}, leaves=10),
        PlainHost({"VCPU": 8}, "b"),
        PlainHost({"VCPU": 1}),
        EIGHT,
        EIGHT,
        EIGHT,
    ]
    holds = [PlainHold(4, 0, 60), PlainHold(5, 0, 60, 4, SLOT), PlainHold(0, 0, 60)]
    world = Minutes(hosts, holds)
    assert lack(world, Demand(5, 5, SLOT, None, A)) == Lack(
        demand=0,
        fits=4,
        displaced=0,
        unusable=2,
        unsuitable=1,
        too_small=1,
        held_whole=1,
        in_use=1,
        taken=0,
    )
    assert lack(world, Demand(3, 3, None, None, A)) == Lack(0, 2, 0, 2, 1, 0, 1, 1, 0)
