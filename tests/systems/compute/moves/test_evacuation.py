"""Evacuation: the lost host keeps the allocations until it is back and has destroyed the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Power, Status, Task
from innkeeper.domain.errors import Conflict, InUse
from innkeeper.domain.moves import MigrationStatus
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves.evacuation import HostInUse
from innkeeper.systems.compute.servers import history, power
from tests.support.clouds import reported
from tests.support.moves import SMALL_TAKES, Movers


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


def test_a_host_that_is_up_is_not_evacuated(movers: Movers) -> None:
    uuid = movers.boot()
    with pytest.raises(HostInUse, match="Compute service of a1 is still in use"):
        movers.evacuate(uuid)


def test_a_lost_host_is_held_until_it_confirms_the_cleanup(movers: Movers) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    assert movers.evacuate(uuid).fault is None
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("ACTIVE", Task.REBUILDING, "a1")
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    assert movers.tell("evacuate", uuid) == "b1"
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    assert movers.migration(uuid).status == MigrationStatus.DONE
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    # The destroy order does not time out.
    for _ in range(3):
        movers.wait(silent="a")
        movers.sweep()
    assert movers.pending_orders() == [("destroy", "a1")]
    # The host comes back with the server. The order to destroy the server is waiting.
    movers.wait(1)
    movers.report(reported("a1", servers=(uuid,)))
    assert movers.pending_orders() == [("destroy", "a1")]
    movers.tell("destroy", uuid)
    assert movers.migration(uuid).status == MigrationStatus.COMPLETED
    assert movers.held(migration.uuid) == {}
    assert movers.state(uuid) == ("ACTIVE", None, "b1")


def test_a_failed_cleanup_does_not_fail_the_evacuation(movers: Movers) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    movers.evacuate(uuid)
    movers.tell("evacuate", uuid)
    movers.wait(1)
    movers.tell("destroy", uuid, "It is busy.")
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    assert (action.action, action.message) == ("evacuate", None)
    events = [(each.name, each.result) for each in action.events]
    assert events == [("evacuate", "Success"), ("destroy", "Error")]


@pytest.mark.parametrize(("was_off", "is_started"), [(True, True), (False, False)])
def test_an_evacuated_server_is_off_if_it_was_or_if_requested(
    movers: Movers, was_off: bool, is_started: bool
) -> None:
    uuid = movers.boot()
    if was_off:
        movers.act(power.stop, uuid)
        movers.finish()
    movers.wait(120, silent="a")
    movers.evacuate(uuid, is_started=is_started)
    (order,) = movers.waiting("evacuate")
    assert order.body["power_state"] == Power.SHUTDOWN
    movers.tell("evacuate", uuid)
    assert movers.state(uuid) == ("SHUTOFF", None, "b1")


@pytest.mark.parametrize("is_late", [False, True])
def test_a_failed_evacuation_keeps_the_server_on_its_lost_host(
    movers: Movers, is_late: bool
) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    movers.evacuate(uuid)
    if is_late:
        movers.wait(silent="a")
        movers.sweep()
        assert movers.pending_orders() == [("destroy", "b1")]
    else:
        movers.tell("evacuate", uuid, "No disk.")
        assert movers.pending_orders() == []
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("ERROR", None, "a1")
    assert migration.status == (MigrationStatus.FAILING if is_late else MigrationStatus.FAILED)
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    assert movers.held(migration.uuid) == ({"b1": SMALL_TAKES} if is_late else {})
    if is_late:
        # The server cannot be evacuated again to a host that may already have it.
        assert "No valid host" in (movers.evacuate(uuid).fault or "")
        movers.tell("destroy", uuid)
    assert movers.migration(uuid).status == MigrationStatus.FAILED
    assert movers.held(migration.uuid) == {}
    assert movers.evacuate(uuid).fault is None


def test_pending_orders_of_a_lost_host_are_withdrawn(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    movers.wait(silent="a")
    movers.sweep()
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    movers.evacuate(uuid)
    assert movers.pending_orders() == [("evacuate", "b1")]
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "b1")


def test_a_server_lost_during_a_live_migration_can_be_evacuated(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("b1"), reported("b2"))
    uuid = movers.boot()
    movers.migrate_live(uuid, host="b1")
    movers.tell("expect", uuid)
    first = movers.migration(uuid)
    movers.wait(silent="a")
    movers.sweep()
    assert movers.state(uuid) == ("ERROR", None, "a1")
    assert movers.evacuate(uuid).fault is None
    movers.judge()
    # The server cannot be evacuated to the host to which it may still be moving.
    assert movers.tell("evacuate", uuid) == "b2"
    second = movers.migration(uuid)
    assert movers.held(uuid) == {"b2": SMALL_TAKES}
    assert movers.held(first.uuid) == {"b1": SMALL_TAKES}
    assert movers.held(second.uuid) == {"a1": SMALL_TAKES}
    movers.finish()
    assert movers.held(first.uuid) == movers.held(second.uuid) == {}
    assert movers.state(uuid) == ("ACTIVE", None, "b2")
    movers.close()


def test_a_forced_host_must_be_up(movers: Movers) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    assert movers.evacuate(uuid, host="b1", is_forced=True).fault is None
    movers.finish()
    movers.wait(120, silent="b")
    movers.wait(120, silent="a")
    other = movers.boot("b1")
    movers.wait(400, silent="b")
    movers.wait(400, silent="-")
    assert movers.state(other)[2] == "b1"


def test_a_host_that_is_down_cannot_be_forced(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("a2"), reported("b1"))
    uuid = movers.boot("a1")
    movers.wait(120, silent="a")
    with pytest.raises(Conflict, match="unavailable"):
        movers.evacuate(uuid, host="a2", is_forced=True)
    assert "No valid host" in (movers.evacuate(uuid, host="a2").fault or "")
    movers.close()


@pytest.mark.parametrize("is_built", [False, True])
def test_an_evacuated_server_that_is_deleted_leaves_nothing(movers: Movers, is_built: bool) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    movers.evacuate(uuid)
    if is_built:
        movers.tell("evacuate", uuid)
    movers.delete(uuid)
    movers.judge()
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    assert movers.usage() == (0, 0, 0)
    assert movers.held(movers.migration(uuid).uuid) == {}


def test_removing_a_lost_host_abandons_its_cleanup(movers: Movers) -> None:
    uuid = movers.boot()
    movers.wait(120, silent="a")
    movers.evacuate(uuid)
    host = movers.cloud.host("a1")
    with pytest.raises(InUse):
        movers.cloud.write(lambda tx: hosts.remove_service(tx, host, movers.now))
    movers.tell("evacuate", uuid)
    movers.cloud.write(lambda tx: hosts.remove_service(tx, host, movers.now))
    assert movers.migration(uuid).status == MigrationStatus.COMPLETED
    movers.judge()
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
