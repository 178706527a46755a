"""Agents that restart during moves: nothing is destroyed that is still needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Power
from innkeeper.domain.errors import InUse
from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute.hosts import hosts, reconcile
from innkeeper.systems.compute.moves import resizing, shelving
from innkeeper.systems.compute.servers import power
from tests.support.clouds import reported
from tests.support.moves import Movers


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


def come_back(movers: Movers, host: str, *servers: ServerId) -> None:
    """Restart a host's agent, which reports these servers."""
    movers.report(reported(host, servers=servers))


def test_leftovers_of_an_open_migration_are_no_strays(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate(uuid)
    for kind in ("depart", "arrive"):
        come_back(movers, "a1", uuid)
        come_back(movers, "b1", uuid)
        assert [kind for kind, _ in movers.pending_orders()] == [kind]
        movers.tell(kind, uuid)
    come_back(movers, "a1", uuid)
    assert movers.pending_orders() == []
    movers.act(resizing.confirm, uuid)
    come_back(movers, "a1", uuid)
    assert movers.pending_orders() == [("destroy", "a1")]
    movers.finish()
    # After the move, the server is left over on the source.
    come_back(movers, "a1", uuid)
    assert movers.pending_orders() == [("destroy", "a1")]


def test_a_preparing_destination_is_left_alone(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    movers.tell("expect", uuid)
    come_back(movers, "b1", uuid)
    # The server was sent to the destination, but the source could not report that.
    come_back(movers, "a1")
    assert movers.state(uuid) == ("ACTIVE", "migrating", "a1")
    assert movers.pending_orders() == [("send", "a1")]
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "b1")


def test_a_lost_server_that_comes_back_regains_its_status(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    movers.finish()
    come_back(movers, "a1")
    assert movers.state(uuid) == ("ERROR", None, "a1")
    assert (movers.server(uuid).fault or {})["message"] == reconcile.LOST
    come_back(movers, "a1", uuid)
    assert movers.state(uuid) == ("SHUTOFF", None, "a1")


def test_a_shelved_server_may_be_on_its_host_or_on_none(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(shelving.shelve, uuid, offload_time_s=0)
    movers.finish()
    come_back(movers, "a1")
    assert movers.state(uuid) == ("SHELVED_OFFLOADED", None, None)
    come_back(movers, "a1", uuid)
    assert movers.pending_orders() == [("destroy", "a1")]
    movers.finish()
    assert movers.state(uuid) == ("SHELVED_OFFLOADED", None, None)


def test_a_host_of_an_open_migration_cannot_be_removed(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate(uuid)
    movers.finish()
    host = movers.cloud.host("a1")
    with pytest.raises(InUse, match="in-progress migrations"):
        movers.cloud.write(lambda tx: hosts.remove_service(tx, host, movers.now))
    movers.act(resizing.confirm, uuid)
    movers.finish()
    movers.cloud.write(lambda tx: hosts.remove_service(tx, host, movers.now))


@pytest.mark.parametrize(
    ("power_state", "status"),
    [(Power.SHUTDOWN, "SHUTOFF"), (Power.PAUSED, "PAUSED"), (None, "ACTIVE")],
)
def test_a_server_gets_the_power_state_that_its_host_reports(
    movers: Movers, power_state: int | None, status: str
) -> None:
    uuid = movers.boot()
    off = {} if power_state is None else {uuid: power_state}
    movers.report(reported("a1", servers=(uuid,), not_running=off))
    assert movers.state(uuid) == (status, None, "a1")
    assert movers.server(uuid).power_state == (power_state or Power.RUNNING)
    movers.report(reported("a1", servers=(uuid,), not_running={}))
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_a_suspended_server_may_be_reported_as_shut_down(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.suspend, uuid)
    movers.report(reported("a1", servers=(uuid,), not_running={uuid: Power.SHUTDOWN}))
    assert movers.state(uuid) == ("ACTIVE", "suspending", "a1")
    movers.finish()
    movers.report(reported("a1", servers=(uuid,), not_running={uuid: Power.SHUTDOWN}))
    assert movers.state(uuid) == ("SUSPENDED", None, "a1")
    movers.report(reported("a1", servers=(uuid,), not_running={}))
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
