"""Changes of a lease: its units stay on their hosts if they can, or if they must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.choosing import ChosenUnits, Constraints, choose
from innkeeper.scheduling.leases.lacks import Lack
from tests.support.minutes import MINUTE, Minutes, PlainHold, PlainHost, at

EIGHT = PlainHost({"VCPU": 8})
SLOT = {"VCPU": 2}
OWN = 7
B = ('["==", "$kind", "b"]',)


def changed(
    world: Minutes,
    demands: Sequence[Demand],
    kept: Sequence[Mapping[int, int]],
    *must_keep: bool,
    cleaning: int = 0,
    seed: int = 1,
) -> list[dict[int, int]] | Lack:
    usable = world.usable()
    found = choose(
        world.calendar(),
        demands,
        at(10),
        at(20),
        usable=usable,
        preferred=np.zeros_like(usable),
        seed=seed,
        constraints=Constraints(cleaning * MINUTE, (OWN,), kept, must_keep),
    )
    if isinstance(found, Lack):
        return found
    assert isinstance(found, ChosenUnits)
    return [dict(each.tolist()) for each in found.by_demand]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("must_keep", [False, True])
def test_hosts_are_kept_and_added(must_keep: bool, seed: int) -> None:
    world = Minutes([EIGHT] * 6, [PlainHold(row, 10, 15, 1, None, OWN) for row in (2, 4)])
    found = changed(world, [Demand(3, 3)], [{2: 1, 4: 1}], must_keep, seed=seed)
    assert isinstance(found, list)
    assert {2, 4} < found[0].keys()
    assert len(found[0]) == 3


def test_a_host_that_another_lease_has_is_replaced_unless_it_must_stay() -> None:
    world = Minutes([EIGHT] * 3, [PlainHold(0, 15, 25), PlainHold(0, 10, 15, 1, None, OWN)])
    kept = [{0: 1, 1: 1}]
    assert changed(world, [Demand(2, 2)], kept) == [{1: 1, 2: 1}]
    refused = changed(world, [Demand(2, 2)], kept, True)
    assert isinstance(refused, Lack)
    assert (refused.demand, refused.displaced, refused.held_whole) == (0, 1, 1)


def test_a_host_that_is_down_stays_if_it_must() -> None:
    world = Minutes([PlainHost({"VCPU": 8}, usable=False), EIGHT])
    for demand in (Demand(1, 1), Demand(1, 1, SLOT)):
        assert changed(world, [demand], [{0: 1}], True) == [{0: 1}]
        assert changed(world, [demand], [{0: 1}], False) == [{1: 1}]


def test_new_requirements_hold_for_what_must_stay() -> None:
    world = Minutes([EIGHT, PlainHost({"VCPU": 8}, "b")])
    assert changed(world, [Demand(1, 1, requirements=B)], [{0: 1}]) == [{1: 1}]
    refused = changed(world, [Demand(1, 1, requirements=B)], [{0: 1}], True)
    assert isinstance(refused, Lack)
    assert (refused.displaced, refused.unsuitable) == (1, 1)


def test_cleaning_counts_for_extensions_as_well() -> None:
    world = Minutes([EIGHT], [PlainHold(0, 24, 30)])
    assert changed(world, [Demand(1, 1)], [{0: 1}], True, cleaning=4) == [{0: 1}]
    assert isinstance(changed(world, [Demand(1, 1)], [{0: 1}], True, cleaning=5), Lack)


def test_one_free_slot_is_enough_for_one_more_unit() -> None:
    """Blazar instead looks for room for all units in addition to those that the lease has."""
    world = Minutes([EIGHT], [PlainHold(0, 0, 60, 1, SLOT), PlainHold(0, 10, 20, 2, SLOT, OWN)])
    assert changed(world, [Demand(3, 3, SLOT)], [{0: 2}], True) == [{0: 3}]
    refused = changed(world, [Demand(4, 4, SLOT)], [{0: 2}], True)
    assert isinstance(refused, Lack)
    assert (refused.displaced, refused.fits) == (0, 3)


def test_units_that_must_stay_only_grow() -> None:
    world = Minutes([EIGHT] * 3, [PlainHold(2, 0, 60, 2, SLOT)])
    assert changed(world, [Demand(3, 3, SLOT)], [{0: 1, 1: 1}], True) == [{0: 1, 1: 1, 2: 1}]
    # Units above the maximum stay, too.
    assert changed(world, [Demand(1, 1, SLOT)], [{0: 1, 1: 1}], True) == [{0: 1, 1: 1}]
    assert changed(world, [Demand(1, 1)], [{0: 1, 1: 1}], True) == [{0: 1, 1: 1}]


def test_units_stay_where_they_are_if_they_can() -> None:
    world = Minutes([EIGHT] * 3, [PlainHold(2, 0, 60, 2, SLOT)])
    assert changed(world, [Demand(2, 2, SLOT)], [{0: 1, 1: 1}]) == [{0: 1, 1: 1}]
    assert changed(world, [Demand(3, 3, SLOT, True)], [{1: 2}]) == [{1: 3}]
    assert changed(world, [Demand(5, 5, SLOT, True)], [{1: 2}], True) != [{1: 5}]
    found = changed(world, [Demand(2, 2, SLOT, False)], [{1: 1}])
    assert found == [{1: 1, 2: 1}]


def test_affinity_grows_on_its_host_only() -> None:
    world = Minutes([EIGHT, PlainHost({"VCPU": 20})])
    refused = changed(world, [Demand(5, 5, SLOT, True)], [{0: 2}], True)
    assert isinstance(refused, Lack)
    assert refused.fits == 4
    assert changed(world, [Demand(5, 5, SLOT, True)], [{0: 2}]) == [{1: 5}]
    # The host that it has is enough, although it has no room for the maximum.
    assert changed(world, [Demand(3, 5, SLOT, True)], [{0: 2}]) == [{0: 4}]


def test_what_demands_keep_is_not_given_to_others() -> None:
    world = Minutes([EIGHT] * 4)
    for seed in range(10):
        found = changed(world, [Demand(2, 2), Demand(2, 2)], [{}, {0: 1, 3: 1}], seed=seed)
        assert found == [{1: 1, 2: 1}, {0: 1, 3: 1}]
    found = changed(world, [Demand(1, 1), Demand(2, 2, SLOT)], [{}, {2: 1, 3: 1}], False, True)
    assert isinstance(found, list)
    assert found[1] == {2: 1, 3: 1}
