"""Resize and cold migration: allocations and hosts at every outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from innkeeper.domain.compute import Flavor, Power, Status, Task
from innkeeper.domain.errors import Conflict, Invalid, QuotaExceeded, WrongState
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Migration, MigrationStatus
from innkeeper.domain.slices import Computing
from innkeeper.systems.compute.moves import completion, resizing
from innkeeper.systems.compute.moves.destinations import UnknownHost
from innkeeper.systems.compute.servers import history, power, zone_servers
from tests.support.clouds import reported
from tests.support.moves import BIG_TAKES, SMALL_TAKES, Movers

SAME_HOST = Computing(
    quota_instances=-1, quota_cores=-1, quota_ram=-1, allow_resize_to_same_host=True
)


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


def carry(movers: Movers, uuid: ServerId) -> None:
    """Complete a server's move."""
    movers.tell("depart", uuid)
    movers.tell("arrive", uuid)


def test_a_resize_holds_both_hosts_until_it_is_confirmed(movers: Movers) -> None:
    uuid = movers.boot()
    assert movers.resize(uuid).fault is None
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("ACTIVE", Task.RESIZE_MIGRATING, "a1")
    assert (migration.kind, migration.status) == ("resize", MigrationStatus.MIGRATING)
    held = ({"b1": BIG_TAKES}, {"a1": SMALL_TAKES})
    assert (movers.held(uuid), movers.held(migration.uuid)) == held
    assert movers.usage() == (1, 2, 2048)
    assert movers.tell("depart", uuid) == "a1"
    assert movers.state(uuid) == ("ACTIVE", Task.RESIZE_FINISH, "a1")
    assert movers.migration(uuid).status == MigrationStatus.POST_MIGRATING
    assert movers.tell("arrive", uuid) == "b1"
    assert movers.state(uuid) == ("VERIFY_RESIZE", None, "b1")
    assert (movers.held(uuid), movers.held(migration.uuid)) == held
    assert movers.server(uuid).flavor_id == "big"
    movers.act(resizing.confirm, uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    assert movers.migration(uuid).status == MigrationStatus.CONFIRMING
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    assert movers.tell("destroy", uuid) == "a1"
    assert movers.migration(uuid).status == MigrationStatus.CONFIRMED
    assert (movers.held(uuid), movers.held(migration.uuid)) == ({"b1": BIG_TAKES}, {})
    assert movers.usage() == (1, 2, 2048)


def test_a_reverted_resize_restores_everything(movers: Movers) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("VERIFY_RESIZE", Task.RESIZE_REVERTING, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {"b1": BIG_TAKES}
    assert movers.usage() == (1, 1, 1024)
    assert movers.tell("destroy", uuid) == "b1"
    assert movers.held(migration.uuid) == {}
    assert movers.tell("return", uuid) == "a1"
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.migration(uuid).status == MigrationStatus.REVERTED
    assert movers.server(uuid).flavor_id == "small"
    assert movers.server(uuid).power_state == Power.RUNNING
    assert movers.pending_orders() == []


def test_after_a_downsize_the_larger_size_counts_until_confirmed(movers: Movers) -> None:
    uuid = movers.boot(flavor_id="big")
    movers.resize(uuid, "small")
    assert movers.usage() == (1, 2, 2048)
    carry(movers, uuid)
    assert movers.usage() == (1, 2, 2048)
    movers.act(resizing.confirm, uuid)
    assert movers.usage() == (1, 1, 1024)


def test_a_stopped_server_stays_stopped_during_a_move(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    movers.tell("stop", uuid)
    assert movers.migrate(uuid, host="b1").fault is None
    carry(movers, uuid)
    assert movers.server(uuid).power_state == Power.SHUTDOWN
    movers.act(resizing.confirm, uuid)
    assert movers.state(uuid) == ("SHUTOFF", None, "b1")


@pytest.mark.parametrize("step", ["depart", "arrive"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_move_that_fails_leaves_the_server_where_it_was(
    movers: Movers, step: str, is_late: bool
) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    if step == "arrive":
        movers.tell("depart", uuid)
    if is_late:
        movers.wait()
        assert movers.sweep() == 1
    else:
        movers.tell(step, uuid, "No.")
    migration = movers.migration(uuid)
    # After a timeout, the destination may have the server.
    may_be_there = is_late and step == "arrive"
    assert migration.status == (MigrationStatus.FAILING if may_be_there else MigrationStatus.ERROR)
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    assert movers.held(migration.uuid) == ({"b1": BIG_TAKES} if may_be_there else {})
    assert movers.usage() == (1, 1, 1024)
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.ERROR
    assert movers.held(migration.uuid) == {}
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    told = "did not confirm" if is_late else f"A host could not carry out the order '{step}'."
    assert told in action.message
    assert not any(name in action.message for name in ("a1", "b1", "No."))
    assert action.events[-1].result in ("Success", "Error")
    # The move can be retried.
    assert movers.resize(uuid).fault is None


def test_a_server_that_its_source_cannot_take_back_is_in_error(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate(uuid)
    movers.tell("depart", uuid)
    movers.tell("arrive", uuid, "No disk.")
    movers.tell("return", uuid, "It does not start.")
    assert movers.state(uuid) == ("ERROR", None, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}


def test_a_failed_revert_keeps_the_server_on_its_destination(movers: Movers) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    movers.tell("destroy", uuid, "It is busy.")
    assert movers.state(uuid) == ("VERIFY_RESIZE", None, "b1")
    assert movers.held(uuid) == {"b1": BIG_TAKES}
    assert movers.usage() == (1, 2, 2048)
    movers.act(resizing.revert, uuid)
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def reverted_without_the_destination(movers: Movers) -> tuple[ServerId, Migration]:
    """A server that is being reverted, whose destination times out."""
    uuid = movers.boot()
    movers.resize(uuid)
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    migration = movers.migration(uuid)
    movers.wait(silent="b")
    movers.sweep()
    return uuid, migration


def test_a_revert_goes_on_without_the_destination_whose_amounts_stay_held(movers: Movers) -> None:
    uuid, migration = reverted_without_the_destination(movers)
    assert movers.pending_orders() == [("destroy", "b1"), ("return", "a1")]
    movers.tell("return", uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.migration(uuid).status == MigrationStatus.REVERTING
    assert movers.held(migration.uuid) == {"b1": BIG_TAKES}
    movers.tell("destroy", uuid)
    assert movers.migration(uuid).status == MigrationStatus.REVERTED
    assert movers.held(migration.uuid) == {}


def test_a_destination_that_fails_to_clean_up_after_the_return_stays_held(movers: Movers) -> None:
    uuid, migration = reverted_without_the_destination(movers)
    movers.tell("destroy", uuid, "It is busy.")
    movers.tell("return", uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.held(migration.uuid) == {"b1": BIG_TAKES}
    movers.wait()
    movers.sweep()
    assert movers.tell("destroy", uuid) == "b1"
    assert movers.migration(uuid).status == MigrationStatus.REVERTED
    assert movers.held(migration.uuid) == {}


@pytest.mark.parametrize("fault", [None, "It is busy."])
def test_results_of_an_earlier_revert_do_not_apply_to_a_later_one(
    tmp_path: Path, fault: str | None
) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("a2"), reported("b1"))
    uuid = movers.boot()
    movers.migrate(uuid, host="b1")
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    movers.wait(silent="b")
    movers.sweep()
    movers.tell("return", uuid)
    first = movers.migration(uuid)
    movers.migrate(uuid, host="a2")
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    (order,) = [each for each in movers.waiting("destroy") if each.host == "b1"]
    movers.settle(order, fault)
    assert movers.state(uuid) == ("VERIFY_RESIZE", Task.RESIZE_REVERTING, "a1")
    assert movers.pending_orders() == [("destroy", "a2")]
    assert movers.held(first.uuid) == ({} if fault is None else {"b1": SMALL_TAKES})
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    movers.close()


def test_a_failed_cleanup_of_the_source_is_retried(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate(uuid)
    carry(movers, uuid)
    movers.act(resizing.confirm, uuid)
    migration = movers.migration(uuid)
    movers.tell("destroy", uuid, "It is busy.")
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    # Meanwhile, the server cannot move back to that host, because the pending order would destroy
    # it.
    assert "No valid host" in (movers.migrate(uuid).fault or "")
    movers.wait()
    movers.sweep()
    assert movers.tell("destroy", uuid) == "a1"
    assert movers.held(migration.uuid) == {}
    assert movers.migrate(uuid).fault is None


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_server_deleted_during_a_move_leaves_nothing(movers: Movers, steps: int) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    for kind in ("depart", "arrive")[:steps]:
        movers.tell(kind, uuid)
    movers.delete(uuid)
    movers.judge()
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    assert not movers.migration(uuid).is_open
    assert movers.usage() == (0, 0, 0)
    assert movers.held(uuid) == {}


def test_a_server_deleted_during_a_revert_leaves_nothing(movers: Movers) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    movers.delete(uuid)
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    assert movers.migration(uuid).status == MigrationStatus.REVERTED
    assert movers.usage() == (0, 0, 0)


def test_a_resize_on_the_same_host_holds_both_sizes_there(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), computing=SAME_HOST)
    uuid = movers.boot()
    assert movers.resize(uuid).fault is None
    migration = movers.migration(uuid)
    held = ({"a1": BIG_TAKES}, {"a1": SMALL_TAKES})
    assert (movers.held(uuid), movers.held(migration.uuid)) == held
    movers.tell("resize", uuid)
    assert movers.state(uuid) == ("VERIFY_RESIZE", None, "a1")
    assert (movers.held(uuid), movers.held(migration.uuid)) == held
    movers.act(resizing.revert, uuid)
    movers.tell("resize", uuid, "It is busy.")
    assert movers.state(uuid) == ("VERIFY_RESIZE", None, "a1")
    movers.act(resizing.revert, uuid)
    movers.tell("resize", uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert (movers.held(uuid), movers.held(migration.uuid)) == ({"a1": SMALL_TAKES}, {})
    movers.resize(uuid)
    movers.tell("resize", uuid)
    movers.act(resizing.confirm, uuid)
    assert movers.pending_orders() == []
    assert movers.migration(uuid).status == MigrationStatus.CONFIRMED
    assert movers.held(uuid) == {"a1": BIG_TAKES}
    movers.close()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_resize_on_the_same_host_that_fails_changes_nothing(
    tmp_path: Path, is_late: bool
) -> None:
    movers = Movers(tmp_path, reported("a1"), computing=SAME_HOST)
    uuid = movers.boot()
    movers.resize(uuid)
    if is_late:
        movers.wait()
        movers.sweep()
        # The server may have its new size by now. It keeps the larger amounts until the old size is
        # restored.
        assert movers.held(movers.migration(uuid).uuid) == {"a1": BIG_TAKES}
    else:
        movers.tell("resize", uuid, "No.")
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.ERROR
    assert movers.held(movers.migration(uuid).uuid) == {}
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    assert movers.usage() == (1, 1, 1024)
    movers.close()


@pytest.mark.parametrize("step", ["depart", "arrive", "revert", "clear"])
def test_a_server_reset_during_a_move_is_taken_back(movers: Movers, step: str) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    if step != "depart":
        movers.tell("depart", uuid)
    if step in ("revert", "clear"):
        movers.tell("arrive", uuid)
        movers.act(resizing.revert, uuid)
    if step == "clear":
        movers.tell("destroy", uuid)
    movers.act(completion.reset_state, uuid, status="ACTIVE")
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    (order,) = movers.waiting("return")
    assert (order.host, order.body["flavor"]["id"]) == ("a1", "small")
    movers.finish()
    assert not movers.migration(uuid).is_open
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.usage() == (1, 1, 1024)


def test_a_failed_destroy_after_a_reset_is_no_error(movers: Movers) -> None:
    uuid = movers.boot()
    movers.delete(uuid)
    movers.act(completion.reset_state, uuid, status="ACTIVE")
    movers.tell("destroy", uuid, "It is busy.")
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_an_unconfirmed_size_is_held_until_it_is_taken_back(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), computing=SAME_HOST)
    uuid = movers.boot()
    movers.resize(uuid)
    migration = movers.migration(uuid)
    movers.act(completion.reset_state, uuid, status="ACTIVE")
    movers.judge()
    movers.tell("resize", uuid)
    held = ({"a1": SMALL_TAKES}, {"a1": BIG_TAKES})
    assert (movers.held(uuid), movers.held(migration.uuid)) == held
    movers.tell("return", uuid)
    assert movers.migration(uuid).status == MigrationStatus.CANCELLED
    assert (movers.held(uuid), movers.held(migration.uuid)) == ({"a1": SMALL_TAKES}, {})
    movers.close()


def test_servers_can_leave_an_overfull_host_and_return(movers: Movers) -> None:
    uuid = movers.boot(flavor_id="big")
    movers.is_judged = False
    movers.report(reported("a1", vcpus=1, memory_mb=1024, disk_gb=10))
    movers.migrate(uuid)
    carry(movers, uuid)
    movers.act(resizing.revert, uuid)
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.held(uuid) == {"a1": BIG_TAKES}


def test_without_a_valid_host_the_action_says_why(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"))
    uuid = movers.boot()
    moved = movers.migrate(uuid)
    assert moved.migration_id is None
    assert "No valid host was found" in (moved.fault or "")
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    (action, created) = movers.cloud.read(lambda tx: history.actions_of(tx, uuid))
    assert (action.action, action.message) == ("migrate", moved.fault)
    assert (created.action, created.request_id) == ("create", "req-boot")
    movers.judge()
    movers.close()


def test_invalid_requests_are_rejected(movers: Movers) -> None:
    uuid = movers.boot()
    with pytest.raises(Invalid, match="must change flavor"):
        movers.resize(uuid, "small")
    with pytest.raises(Invalid, match="could not be found"):
        movers.resize(uuid, "none")
    with pytest.raises(UnknownHost):
        movers.migrate(uuid, host="z9")
    with pytest.raises(Invalid):
        movers.migrate(uuid, host="a1")
    with pytest.raises(WrongState) as caught:
        movers.act(resizing.confirm, uuid)
    assert (caught.value.fact, caught.value.value) == ("status", "ACTIVE")
    movers.resize(uuid)
    with pytest.raises(WrongState) as caught:
        movers.resize(uuid)
    assert (caught.value.fact, caught.value.value) == ("task_state", Task.RESIZE_MIGRATING)
    movers.finish()
    movers.act(resizing.revert, uuid)
    movers.finish()
    movers.wait(120, silent="a")
    with pytest.raises(Conflict, match="unavailable"):
        movers.migrate(uuid)


def test_a_quota_without_room_rejects_the_larger_size(tmp_path: Path) -> None:
    few = Computing(quota_instances=-1, quota_cores=1, quota_ram=-1)
    movers = Movers(tmp_path, computing=few)
    uuid = movers.boot()
    with pytest.raises(QuotaExceeded, match="cores: Requested 1, but already used 1 of 1"):
        movers.resize(uuid)
    assert movers.migrate(uuid).fault is None
    movers.close()


def test_the_events_of_an_action_are_its_orders(movers: Movers) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    carry(movers, uuid)
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    events = [(each.name, each.host, each.result) for each in action.events]
    assert events == [("depart", "a1", "Success"), ("arrive", "b1", "Success")]
    created = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-boot"))
    assert [each.name for each in created.events] == ["build"]


def test_a_zone_parent_is_told_the_larger_flavor_during_a_resize(movers: Movers) -> None:
    """The parent's quota then counts what this zone's own quota would count."""

    def told() -> tuple[int, int]:
        found = movers.cloud.read(lambda tx: zone_servers.held(tx, "project", [uuid]))
        assert found == movers.cloud.read(
            lambda tx: zone_servers.held_page(tx, "project", None, 10)
        )
        (server,) = found
        return server.vcpus, server.memory_mb

    uuid = movers.boot()
    assert told() == (1, 1024)
    movers.resize(uuid)
    assert told() == (2, 2048)
    carry(movers, uuid)
    assert told() == (2, 2048)
    movers.act(resizing.revert, uuid)
    assert told() == (1, 1024)
    movers.tell("destroy", uuid)
    movers.tell("return", uuid)
    assert told() == (1, 1024)
    assert movers.usage() == (1, 1, 1024)


def test_a_flavor_of_a_zone_parent_is_not_looked_up(movers: Movers) -> None:
    """A parent's server cannot take slots of a reservation of this zone."""
    uuid = movers.boot()
    wide = Flavor(0, "wide", "wide", 2, 2048, 20)
    slots = {"resources:CUSTOM_RESERVATION_0F0000000000400080000000000000FF": "1"}
    with pytest.raises(Invalid, match="Flavor wide could not be found"):
        movers.resize(uuid, "wide", told=replace(wide, extra_specs=slots))
    with pytest.raises(Invalid, match="must change flavor"):
        movers.resize(uuid, "small", told=replace(wide, flavor_id="small"))
    assert movers.resize(uuid, "wide", told=wide).fault is None
    carry(movers, uuid)
    assert movers.server(uuid).flavor["name"] == "wide"
