"""Size policies: what one turn does to a pcloud, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.pclouds import SILENT_S, SizePolicy
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.moves import shelving
from innkeeper.systems.pclouds import hosts, sizes
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.sized_pclouds import OWNER, SERVERS_EACH, Kept

IDLE_S = 3600
UNIT_QUOTA = 4
"""The quota that :mod:`tests.support.pcloud_operator` gives a project."""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path, 5)
    yield made
    made.movers.judge()
    made.movers.close()


# -- growth ------------------------------------------------------------------------------------


def test_it_grows_to_the_minimum_by_one_host_a_turn(kept: Kept) -> None:
    kept.wants(3, 4)
    assert kept.turns(5) == [1, 1, 1, 0, 0]
    assert kept.names() == ["mine~auto-1", "mine~auto-2", "mine~auto-3"]


def test_an_added_host_is_open_and_paid_for(kept: Kept) -> None:
    kept.wants(1, 1)
    assert kept.turn() == 1
    (added,) = kept.hosts()
    assert (added.is_open, added.units, added.flavor_id) == (True, 1, "gold")
    assert kept.actions() == [("create", None), ("allocate", "mine~auto-1")]
    assert kept.boot()


def test_generated_names_skip_the_owners_names(kept: Kept) -> None:
    kept.wants(0, 3)
    kept.operator.allocate(kept.uuid, HostRequest("mine~auto-1", "gold"))
    kept.turn()
    assert kept.names() == ["mine~auto-1", "mine~auto-2"]


def test_without_a_minimum_it_begins_with_one_host(kept: Kept) -> None:
    """A pcloud without hosts has no room, so it grows."""
    kept.wants(0, 2)
    assert kept.turns(3) == [1, 0, 0]


def test_it_grows_when_all_are_full_and_not_before(kept: Kept) -> None:
    kept.wants(1, 3)
    kept.turn()
    kept.boot("mine~auto-1")
    assert kept.turn() == 0
    kept.boot("mine~auto-1")
    assert kept.turns(3) == [1, 0, 0]
    kept.fill("mine~auto-2")
    assert kept.turn() == 1


def test_it_does_not_grow_beyond_the_maximum(kept: Kept) -> None:
    kept.wants(1, 2)
    kept.turn()
    kept.fill("mine~auto-1")
    kept.turn()
    kept.fill("mine~auto-2")
    assert kept.turns(3) == [0, 0, 0]
    assert kept.names() == ["mine~auto-1", "mine~auto-2"]


def test_the_policy_says_how_many_processors_must_be_free(kept: Kept) -> None:
    kept.wants(1, 2, vcpus_min=2)
    kept.turn()
    assert kept.turn() == 0
    kept.boot("mine~auto-1")
    assert kept.turn() == 1


def test_a_closed_host_has_no_room(kept: Kept) -> None:
    kept.wants(1, 3)
    kept.turn()
    kept.operator.switch(kept.uuid, "mine~auto-1", is_enabled=False)
    assert kept.turn() == 1
    kept.operator.switch_service(kept.machine("mine~auto-2"), ServiceChange(is_forced_down=True))
    assert kept.turns(2) == [1, 0]


def test_hosts_in_maintenance_have_no_room(kept: Kept) -> None:
    kept.wants(1, 2)
    kept.turn()
    kept.operator.maintain("gold", kept.machine("mine~auto-1"), "new fans")
    assert kept.turns(2) == [1, 0]


@pytest.fixture
def two_agents(tmp_path: Path) -> Iterator[Kept]:
    """Two hosts of different agents; the pcloud takes the host of agent ``a`` first."""
    made = Kept(tmp_path, 1)
    made.wants(1, 2, idle_s=0)
    made.turn()
    made.movers.report(reported("b1", vcpus=SERVERS_EACH))
    made.pool("b1")
    yield made
    made.movers.close()


def test_a_silent_host_has_room_for_some_minutes(two_agents: Kept) -> None:
    keep_sizes, wait = two_agents.operator.keep_sizes, two_agents.movers.wait
    two_agents.boot("mine~auto-1")
    wait(SILENT_S, silent="a")
    assert keep_sizes() == 0
    wait(1, silent="a")
    assert keep_sizes() == 1
    assert two_agents.machine("mine~auto-2") == "b1"


def test_the_room_of_a_silent_host_does_not_allow_shrinking(two_agents: Kept) -> None:
    two_agents.boot("mine~auto-1")
    two_agents.operator.allocate(
        two_agents.uuid, HostRequest("mine~auto-2", "gold", is_enabled=True)
    )
    two_agents.movers.wait(61, silent="a")
    assert two_agents.operator.keep_sizes() == 0
    two_agents.movers.wait(1)
    assert two_agents.operator.keep_sizes() == 1
    assert two_agents.names() == ["mine~auto-1"]


def test_a_replaced_host_does_not_count(kept: Kept) -> None:
    kept.wants(1, 1)
    kept.turn()
    server = kept.boot("mine~auto-1")
    kept.operator.maintain("gold", kept.machine("mine~auto-1"), "new fans")
    kept.operator.act(
        kept.uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, "mine~auto-1", context)
    )
    assert kept.turns(2) == [0, 0]
    assert kept.names() == ["mine~auto-1", "mine~auto-1~1"]
    kept.delete(server)


def test_hosts_come_from_the_zone_of_the_policy(tmp_path: Path) -> None:
    kept = Kept(tmp_path, 3, {"a2": "west"})
    kept.wants(2, 2, availability_zone="west")
    assert kept.turns(3) == [1, 0, 0]
    assert kept.machine("mine~auto-1") == "a2"
    kept.movers.close()


# -- no growth ---------------------------------------------------------------------------------


def told_in_vain(kept: Kept) -> int:
    return [action for action, _ in kept.actions()].count(sizes.CANNOT_GROW)


def test_a_failure_to_grow_is_recorded_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path, 1)
    kept.wants(2, 2)
    assert kept.turns(4) == [1, 0, 0, 0]
    assert told_in_vain(kept) == 1
    kept.movers.report(reported("a2"))
    kept.pool("a2")
    assert kept.turns(2) == [1, 0]
    assert told_in_vain(kept) == 1
    kept.movers.close()


def test_a_failure_with_another_reason_is_recorded(tmp_path: Path) -> None:
    kept = Kept(tmp_path, 1)
    kept.wants(2, 2)
    kept.turns(3)
    kept.movers.report(reported("a2"))
    kept.pool("a2")
    kept.operator.set_quota(OWNER, 1)
    assert kept.turns(3) == [0, 0, 0]
    assert told_in_vain(kept) == 2
    kept.operator.set_quota(OWNER, 2)
    assert kept.turn() == 1
    kept.movers.close()


def test_the_quota_limits_growth(kept: Kept) -> None:
    kept.wants(5, 5)
    assert kept.turns(6) == [1] * UNIT_QUOTA + [0, 0]
    assert told_in_vain(kept) == 1


def test_a_deleted_flavor_is_recorded_as_a_failure(tmp_path: Path) -> None:
    kept = Kept(tmp_path, 0)
    kept.wants(1, 1)
    kept.operator.undefine("gold", by_aggregate=False)
    assert kept.turns(2) == [0, 0]
    assert told_in_vain(kept) == 1
    kept.movers.close()


# -- shrinking ---------------------------------------------------------------------------------


def test_it_shrinks_when_a_host_was_idle_long_enough(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=IDLE_S)
    kept.turn()
    servers = kept.fill("mine~auto-1")
    kept.turn()
    kept.boot("mine~auto-2")
    for each in servers:
        kept.delete(each)
    assert kept.turn(IDLE_S - 30) == 0
    assert kept.turn(60) == 1
    assert kept.names() == ["mine~auto-2"]
    assert kept.actions()[-2:] == [("disable", "mine~auto-1"), ("release", "mine~auto-1")]


def test_a_host_without_servers_is_idle_since_its_allocation(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=IDLE_S)
    kept.operator.allocate(kept.uuid, HostRequest("a", "gold", is_enabled=True))
    kept.turn(IDLE_S - 30)
    kept.operator.allocate(kept.uuid, HostRequest("b", "gold", is_enabled=True))
    assert kept.names() == ["a", "b"]
    kept.turn(60)
    assert kept.names() == ["b"]


def test_no_host_is_idle_without_an_idle_time(kept: Kept) -> None:
    kept.wants(0, 3)
    kept.turn()
    kept.operator.allocate(kept.uuid, HostRequest("b", "gold", is_enabled=True))
    assert kept.turn(100 * IDLE_S) == 0
    assert kept.names() == ["b", "mine~auto-1"]


def test_it_does_not_shrink_below_the_minimum(kept: Kept) -> None:
    kept.wants(2, 3, idle_s=0)
    kept.turns(3)
    kept.operator.allocate(kept.uuid, HostRequest("extra", "gold", is_enabled=True))
    kept.turn()
    assert len(kept.names()) == 2
    kept.turns(3)
    assert len(kept.names()) == 2


def test_the_last_host_with_room_stays(kept: Kept) -> None:
    """Otherwise, a new host would replace it at once, in every turn again."""
    kept.wants(0, 3, idle_s=0)
    kept.turn()
    assert kept.turns(3) == [0, 0, 0]
    kept.fill("mine~auto-1")
    kept.turn()
    assert kept.turns(3) == [0, 0, 0]
    assert kept.names() == ["mine~auto-1", "mine~auto-2"]


def test_an_idle_closed_host_is_released_if_another_has_room(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=0)
    kept.turn()
    kept.operator.allocate(kept.uuid, HostRequest("closed", "gold"))
    kept.turn()
    assert kept.names() == ["mine~auto-1"]


def test_the_youngest_idle_host_is_released_first(kept: Kept) -> None:
    kept.wants(1, 4, idle_s=60)
    for name in ("c", "b", "a"):
        kept.operator.allocate(kept.uuid, HostRequest(name, "gold", is_enabled=True))
        kept.movers.wait(1)
    kept.turn(60)
    assert kept.names() == ["b", "c"]
    kept.turn()
    assert kept.names() == ["c"]


def test_a_host_with_a_server_stays(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=0)
    for name in ("a", "b"):
        kept.operator.allocate(kept.uuid, HostRequest(name, "gold", is_enabled=True))
    kept.boot("a")
    kept.boot("b")
    assert kept.turns(3) == [0, 0, 0]


def test_idle_time_begins_when_a_migration_is_over(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=IDLE_S)
    for name in ("a", "b"):
        kept.operator.allocate(kept.uuid, HostRequest(name, "gold", is_enabled=True))
    server = kept.boot("b")
    kept.movers.wait(2 * IDLE_S)
    kept.movers.migrate_live(server)
    kept.movers.finish()
    kept.turn()
    assert kept.names() == ["a", "b"]
    kept.turn(IDLE_S)
    assert kept.names() == ["a"]


def test_idle_time_begins_when_shelving_is_over(kept: Kept) -> None:
    kept.wants(1, 3, idle_s=IDLE_S)
    for name in ("a", "b"):
        kept.operator.allocate(kept.uuid, HostRequest(name, "gold", is_enabled=True))
    server = kept.boot("b")
    kept.movers.wait(2 * IDLE_S)
    kept.boot("a")
    kept.movers.act(shelving.shelve, server, offload_time_s=0)
    kept.movers.finish()
    kept.turn()
    assert kept.names() == ["a", "b"]
    kept.turn(IDLE_S)
    assert kept.names() == ["a"]


# -- due pclouds -------------------------------------------------------------------------------


def test_pclouds_without_a_policy_keep_their_size(kept: Kept) -> None:
    kept.uuid = kept.operator.create(OWNER, name="mine")
    assert kept.movers.cloud.read(sizes.due) == []
    assert kept.turn() == 0
    size = SizePolicy(1, 1, "gold")
    kept.operator.update(kept.uuid, size=size)
    assert kept.movers.cloud.read(sizes.due) == [kept.uuid]
    kept.operator.update(kept.uuid, size=None)
    assert kept.movers.cloud.read(sizes.due) == []


def test_a_pcloud_deleted_meanwhile_is_skipped(kept: Kept) -> None:
    kept.wants(1, 1)
    kept.operator.delete(kept.uuid, by_aggregate=False)
    assert kept.turn() == 0
