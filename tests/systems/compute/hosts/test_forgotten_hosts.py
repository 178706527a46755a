"""Hosts that do not come back: removing a host releases what moves have left on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import InUse
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import MigrationStatus
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves import resizing
from tests.support.moves import SMALL_TAKES, Movers


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


def forget(movers: Movers, name: str) -> None:
    """Remove the compute service of a host."""
    host = movers.cloud.host(name)
    movers.cloud.write(lambda tx: hosts.remove_service(tx, host, movers.now))
    movers.judge()


def moved(movers: Movers) -> ServerId:
    """A server that was moved to the second host, and whose move may be reverted."""
    uuid = movers.boot()
    movers.migrate(uuid)
    movers.tell("depart", uuid)
    movers.tell("arrive", uuid)
    return uuid


def test_a_source_lost_before_its_cleanup(movers: Movers) -> None:
    uuid = moved(movers)
    movers.wait(120, silent="a")
    with pytest.raises(InUse, match="in-progress migrations"):
        forget(movers, "a1")
    movers.act(resizing.confirm, uuid)
    migration = movers.migration(uuid)
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    forget(movers, "a1")
    assert movers.migration(uuid).status == MigrationStatus.CONFIRMED
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    assert movers.held(uuid) == {"b1": SMALL_TAKES}


def test_a_destination_lost_during_a_revert(movers: Movers) -> None:
    uuid = moved(movers)
    movers.act(resizing.revert, uuid)
    movers.wait(silent="b")
    with pytest.raises(InUse, match="in-progress migrations"):
        forget(movers, "b1")
    movers.sweep()
    movers.tell("return", uuid)
    assert movers.migration(uuid).status == MigrationStatus.REVERTING
    forget(movers, "b1")
    assert movers.migration(uuid).status == MigrationStatus.REVERTED
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_a_destination_lost_before_the_server_arrives(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate(uuid)
    movers.tell("depart", uuid)
    movers.wait(silent="b")
    with pytest.raises(InUse, match="in-progress migrations"):
        forget(movers, "b1")
    movers.sweep()
    assert movers.migration(uuid).status == MigrationStatus.FAILING
    movers.tell("return", uuid)
    forget(movers, "b1")
    assert movers.migration(uuid).status == MigrationStatus.ERROR
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_a_source_lost_while_it_sends_a_deleted_server(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    movers.tell("expect", uuid)
    migration = movers.migration(uuid)
    movers.wait(120, silent="a")
    movers.delete(uuid)
    assert movers.server(uuid).status == Status.DELETED
    forget(movers, "a1")
    # The server may have arrived before the host was removed.
    assert movers.held(migration.uuid) == {"b1": SMALL_TAKES}
    for order in movers.waiting("destroy"):
        if order.host == "b1":
            movers.settle(order)
    assert movers.migration(uuid).status == MigrationStatus.CANCELLED
    assert movers.held(migration.uuid) == {}
