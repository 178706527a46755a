"""Shelving: what a shelved server holds, and where it is unshelved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing
from innkeeper.systems.compute.moves import completion, shelving
from innkeeper.systems.compute.moves.destinations import UnknownHost
from innkeeper.systems.compute.servers import history
from tests.support.clouds import reported
from tests.support.moves import SMALL_TAKES, Movers

OFFLOADED = (Status.SHELVED_OFFLOADED, None, None)


def with_offload_time(seconds: int) -> Computing:
    """Settings by which shelved servers keep their hosts for some time."""
    more: dict[str, Any] = {"quota_instances": -1, "quota_cores": -1, "quota_ram": -1}
    return Computing(**more, shelved_offload_time=seconds)


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own and a zone of its own."""
    made = Movers(
        tmp_path,
        reported("a1", availability_zone="left"),
        reported("b1", availability_zone="right"),
    )
    yield made
    made.close()


def shelve(movers: Movers, uuid: str, offload_time_s: int = 0) -> None:
    """Begin to shelve a server."""
    movers.act(shelving.shelve, uuid, offload_time_s=offload_time_s)


def test_an_offloaded_server_releases_its_host_and_keeps_its_quota(movers: Movers) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    assert movers.state(uuid) == ("ACTIVE", Task.SHELVING, "a1")
    movers.tell("shelve", uuid)
    assert movers.state(uuid) == ("SHELVED", Task.SHELVING_OFFLOADING, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    movers.tell("offload", uuid)
    assert movers.state(uuid) == OFFLOADED
    assert movers.held(uuid) == {}
    assert movers.usage() == (1, 1, 1024)
    assert movers.unshelve(uuid, host="b1").fault is None
    assert movers.state(uuid) == ("SHELVED_OFFLOADED", Task.UNSHELVING, "b1")
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    movers.tell("unshelve", uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    assert [each.name for each in action.events] == ["shelve", "offload"]


def test_a_server_that_kept_its_host_is_unshelved_there(movers: Movers) -> None:
    uuid = movers.boot()
    shelve(movers, uuid, -1)
    movers.tell("shelve", uuid)
    assert movers.state(uuid) == ("SHELVED", None, "a1")
    with pytest.raises(shelving.NotOffloaded):
        movers.unshelve(uuid, host="b1")
    with pytest.raises(shelving.NotOffloaded):
        movers.unshelve(uuid, availability_zone=None)
    movers.unshelve(uuid)
    assert movers.tell("unshelve", uuid) == "a1"
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    shelve(movers, uuid, -1)
    movers.finish()
    movers.act(shelving.offload, uuid)
    movers.finish()
    assert movers.state(uuid) == OFFLOADED


def test_a_shelved_server_is_offloaded_after_the_configured_time(tmp_path: Path) -> None:
    movers = Movers(tmp_path, computing=with_offload_time(3600))
    uuid = movers.boot()
    shelve(movers, uuid, 3600)
    movers.finish()
    movers.wait(3000)
    assert movers.sweep() == 0
    movers.wait(601)
    assert movers.sweep() == 1
    movers.finish()
    assert movers.state(uuid) == OFFLOADED
    movers.close()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_server_that_cannot_be_shelved_keeps_running(movers: Movers, is_late: bool) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    if is_late:
        movers.wait()
        movers.sweep()
    else:
        movers.tell("shelve", uuid, "No room for the image.")
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_a_failed_offload_keeps_the_server_on_its_host(movers: Movers) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    movers.tell("shelve", uuid)
    movers.wait()
    movers.sweep()
    # Destroy orders do not time out.
    assert movers.pending_orders() == [("offload", "a1")]
    movers.tell("offload", uuid, "It is busy.")
    assert movers.state(uuid) == ("SHELVED", None, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_failed_unshelve_offloads_the_server_again(movers: Movers, is_late: bool) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    movers.finish()
    movers.unshelve(uuid, host="b1")
    if is_late:
        movers.wait()
        movers.sweep()
        # The server may have been started after all.
        assert movers.state(uuid) == ("SHELVED_OFFLOADED", Task.SHELVING_OFFLOADING, "b1")
        assert movers.held(uuid) == {"b1": SMALL_TAKES}
        assert movers.pending_orders() == [("offload", "b1")]
        movers.finish()
    else:
        movers.tell("unshelve", uuid, "No image.")
    assert movers.state(uuid) == OFFLOADED
    assert movers.held(uuid) == {}
    assert movers.unshelve(uuid).fault is None


@pytest.mark.parametrize("fault", [None, "It is busy."])
def test_a_confirmed_offload_applies_after_a_reset(movers: Movers, fault: str | None) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    movers.tell("shelve", uuid)
    movers.act(completion.reset_state, uuid, status="ACTIVE")
    movers.tell("offload", uuid, fault)
    assert movers.state(uuid) == (OFFLOADED if fault is None else ("ACTIVE", None, "a1"))
    assert movers.held(uuid) == ({} if fault is None else {"a1": SMALL_TAKES})


def maybe_started(movers: Movers) -> ServerId:
    """A server whose start on b1 timed out."""
    uuid = movers.boot()
    shelve(movers, uuid)
    movers.finish()
    movers.unshelve(uuid, host="b1")
    movers.wait()
    movers.sweep()
    return uuid


@pytest.mark.parametrize("is_wanted", [False, True])
def test_a_server_that_may_have_started_is_not_started_elsewhere(
    movers: Movers, is_wanted: bool
) -> None:
    uuid = maybe_started(movers)
    movers.tell("offload", uuid, "It is busy.")
    assert movers.state(uuid) == ("SHELVED_OFFLOADED", None, "b1")
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    with pytest.raises(shelving.NotOffloaded):
        movers.unshelve(uuid, host="a1")
    if is_wanted:
        assert movers.unshelve(uuid).fault is None
        assert movers.tell("unshelve", uuid) == "b1"
        assert movers.state(uuid) == ("ACTIVE", None, "b1")
    else:
        # The order is repeated.
        movers.wait()
        movers.sweep()
        movers.finish()
        assert movers.state(uuid) == OFFLOADED
        assert movers.held(uuid) == {}


def test_a_server_that_may_have_started_can_be_deleted(movers: Movers) -> None:
    uuid = maybe_started(movers)
    movers.delete(uuid)
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    assert movers.held(uuid) == {}


def test_a_zone_named_in_an_unshelve_is_requested_from_then_on(movers: Movers) -> None:
    uuid = movers.boot(availability_zone="left")
    for zone, host in (("right", "b1"), ("left", "a1")):
        shelve(movers, uuid)
        movers.finish()
        assert movers.unshelve(uuid, availability_zone=zone).fault is None
        movers.finish()
        assert movers.state(uuid) == ("ACTIVE", None, host)
        assert movers.server(uuid).asked_az == zone
    shelve(movers, uuid)
    movers.finish()
    with pytest.raises(shelving.HostNotInZone):
        movers.unshelve(uuid, host="b1")
    with pytest.raises(UnknownHost):
        movers.unshelve(uuid, host="z9")
    with pytest.raises(Invalid):
        movers.unshelve(uuid, availability_zone="nowhere")
    assert movers.unshelve(uuid, availability_zone=None, host="b1").fault is None
    assert movers.server(uuid).asked_az is None


def test_without_room_a_server_stays_shelved(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1", vcpus=1))
    uuid = movers.boot()
    shelve(movers, uuid)
    movers.finish()
    movers.boot()
    assert "No valid host" in (movers.unshelve(uuid).fault or "")
    assert movers.state(uuid) == OFFLOADED
    movers.close()


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_shelved_server_that_is_deleted_leaves_nothing(movers: Movers, steps: int) -> None:
    uuid = movers.boot()
    shelve(movers, uuid)
    for kind in ("shelve", "offload")[:steps]:
        movers.tell(kind, uuid)
    if steps == 3:
        movers.unshelve(uuid)
    movers.delete(uuid)
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    assert movers.usage() == (0, 0, 0)
    movers.judge()
