"""Trees of zones: their shapes, and how they get their hosts."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.simulation.fleets import HostGroup, HostShape
from innkeeper.scheduling.simulation.zone_trees import (
    BY_SHAPE,
    CONTIGUOUS,
    DEALS,
    SimulatedZone,
    groups_at,
    owners_of,
    uniform,
)
from tests.support.zone_trees import tree_of

OLD, NEW = HostShape("old", {"VCPU": 8}), HostShape("new", {"VCPU": 16})
FLEET = [HostGroup(OLD, 2), HostGroup(NEW, 2), HostGroup(HostShape("older", {"VCPU": 8}), 2)]
A, B = SimulatedZone("a"), SimulatedZone("b", share=2.0)


def test_a_uniform_tree_has_hosts_on_its_last_level_only() -> None:
    zones = list(uniform("2x3", [2, 3]).root.preorder())
    assert [zone.name for zone in zones][:5] == [
        "root",
        "zone-1",
        "zone-1.1",
        "zone-1.2",
        "zone-1.3",
    ]
    assert [zone.share for zone in zones] == [0, 0, 1, 1, 1, 0, 1, 1, 1]
    assert uniform("2x3", [2, 3]).root.depth() == 2
    assert uniform("1", []).is_alone


@pytest.mark.parametrize(
    ("deal", "owners"),
    [
        ("round-robin", [2, 1, 2, 2, 1, 2]),
        (CONTIGUOUS, [1, 1, 2, 2, 2, 2]),
        (BY_SHAPE, [1, 1, 2, 2, 2, 2]),
    ],
)
def test_hosts_are_dealt_by_shares(deal: str, owners: list[int]) -> None:
    assert owners_of(tree_of(A, B, deal=deal), FLEET).tolist() == owners


def test_hosts_of_equal_totals_stay_together() -> None:
    zones = (SimulatedZone("a", share=4.0), SimulatedZone("b", share=2.0))
    assert owners_of(tree_of(*zones, deal=BY_SHAPE), FLEET).tolist() == [1, 1, 2, 2, 1, 1]
    assert owners_of(tree_of(*zones, deal=CONTIGUOUS), FLEET).tolist() == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("deal", DEALS)
def test_every_host_has_one_owner_and_zones_get_their_groups(deal: str) -> None:
    owners = owners_of(tree_of(A, B, share=1.0, deal=deal), FLEET)
    assert owners.shape == (6,)
    found = [groups_at(FLEET, (owners == number).nonzero()[0]) for number in range(3)]
    assert sum(group.count or 0 for groups in found for group in groups) == 6
    names = sorted(g.shape.name for groups in found for g in groups for _ in range(g.count or 0))
    assert names == ["new", "new", "old", "old", "older", "older"]


def test_bad_trees_are_rejected() -> None:
    with pytest.raises(Invalid, match="same name"):
        tree_of(A, A)
    with pytest.raises(Invalid, match="share"):
        tree_of(SimulatedZone("a", share=0.0))
    with pytest.raises(Invalid, match="too wide"):
        uniform("0", [0])
    with pytest.raises(Invalid, match="too wide"):
        uniform("100x100", [100, 100])
    with pytest.raises(Invalid, match="levels"):
        uniform("deep", [1] * 9)
