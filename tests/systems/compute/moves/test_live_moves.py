"""Live migration: both hosts are held until the source has reported the result."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.errors import Conflict, Invalid, NotFound, WrongState
from innkeeper.domain.moves import MigrationSelection, MigrationStatus
from innkeeper.systems.compute.moves import completion, migrations, resizing, shelving
from innkeeper.systems.compute.moves.migrations import WrongMigrationState
from innkeeper.systems.compute.servers import power
from tests.support.clouds import reported
from tests.support.moves import SMALL_TAKES, Movers


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


def test_a_sent_server_is_on_its_destination(movers: Movers) -> None:
    uuid = movers.boot()
    assert movers.migrate_live(uuid).fault is None
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("ACTIVE", Task.MIGRATING, "a1")
    assert migration.status == MigrationStatus.PREPARING
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    assert movers.tell("expect", uuid) == "b1"
    assert movers.migration(uuid).status == MigrationStatus.RUNNING
    found = movers.cloud.read(lambda tx: migrations.in_progress(tx, uuid))
    assert [each.id for each in found] == [migration.id]
    assert movers.tell("send", uuid) == "a1"
    assert movers.state(uuid) == ("ACTIVE", None, "b1")
    assert movers.migration(uuid).status == MigrationStatus.COMPLETED
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {}
    assert movers.pending_orders() == []


def test_a_paused_server_stays_paused(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.pause, uuid)
    movers.tell("pause", uuid)
    movers.migrate_live(uuid, host="b1")
    movers.finish()
    assert movers.state(uuid) == ("PAUSED", None, "b1")


def test_a_forced_host_needs_only_room(movers: Movers) -> None:
    uuid = movers.boot()
    assert movers.migrate_live(uuid, host="b1", is_forced=True).fault is None
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, "b1")


@pytest.mark.parametrize("step", ["expect", "send"])
def test_a_server_that_cannot_be_sent_stays(movers: Movers, step: str) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    if step == "send":
        movers.tell("expect", uuid)
    movers.tell(step, uuid, "No.")
    migration = movers.migration(uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert (migration.status, migration.message) == (
        MigrationStatus.FAILING,
        f"A host could not carry out the order '{step}'.",
    )
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    # What the destination has prepared keeps its allocations until it is destroyed.
    assert movers.held(migration.uuid) == {"b1": SMALL_TAKES}
    assert movers.pending_orders() == [("destroy", "b1")]
    assert "No valid host" in (movers.migrate_live(uuid).fault or "")
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.ERROR
    assert movers.held(migration.uuid) == {}
    assert movers.migrate_live(uuid).fault is None


def test_a_destination_that_times_out_is_cleaned_up(movers: Movers) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    movers.wait()
    movers.sweep()
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.migration(uuid).status == MigrationStatus.FAILING
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.ERROR


@pytest.mark.parametrize("has_arrived", [False, True])
def test_only_the_source_knows_where_a_sent_server_is(movers: Movers, has_arrived: bool) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    movers.tell("expect", uuid)
    migration = movers.migration(uuid)
    movers.wait()
    movers.sweep()
    movers.sweep()
    # Both hosts stay held, and the order stays pending.
    assert movers.state(uuid) == ("ERROR", None, "a1")
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    assert movers.pending_orders() == [("send", "a1"), ("abort", "a1")]
    movers.tell("send", uuid, None if has_arrived else "It was stopped.")
    host = "b1" if has_arrived else "a1"
    assert movers.state(uuid) == ("ACTIVE", None, host)
    assert movers.held(uuid) == {host: SMALL_TAKES}
    movers.finish()


def test_a_preparing_migration_is_cancelled_at_once(movers: Movers) -> None:
    uuid = movers.boot()
    number = movers.migrate_live(uuid).migration_id
    with pytest.raises(WrongMigrationState):
        movers.act(migrations.abort, uuid, number, in_queue=False)
    movers.act(migrations.abort, uuid, number, in_queue=True)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.migration(uuid).status == MigrationStatus.CANCELLING
    # The destination may still be preparing, but its result does not count any more.
    assert movers.pending_orders() == [("expect", "b1"), ("destroy", "b1")]
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.CANCELLED
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    with pytest.raises(WrongState):
        movers.act(migrations.abort, uuid, number, in_queue=True)


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR"])
@pytest.mark.parametrize("has_arrived", [False, True])
def test_resetting_a_server_that_is_being_sent_does_not_destroy_it(
    movers: Movers, status: str, has_arrived: bool
) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    movers.tell("expect", uuid)
    migration = movers.migration(uuid)
    movers.act(completion.reset_state, uuid, status=status)
    assert movers.state(uuid) == (status, None, "a1")
    assert movers.pending_orders() == [("send", "a1"), ("abort", "a1")]
    assert movers.held(uuid) == {"b1": SMALL_TAKES}
    assert movers.held(migration.uuid) == {"a1": SMALL_TAKES}
    movers.judge()
    movers.tell("send", uuid, None if has_arrived else "It was stopped.")
    host = "b1" if has_arrived else "a1"
    assert movers.state(uuid) == ("ACTIVE", None, host)
    assert movers.held(uuid) == {host: SMALL_TAKES}
    assert [host for kind, host in movers.pending_orders() if kind == "destroy"] == (
        [] if has_arrived else ["b1"]
    )


def test_a_server_that_may_be_moving_cannot_be_moved_again(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("b1"), reported("b2"))
    uuid = movers.boot()
    movers.migrate_live(uuid, host="b1")
    movers.tell("expect", uuid)
    movers.act(completion.reset_state, uuid, status="ACTIVE")
    for attempt in (
        lambda: movers.migrate(uuid),
        lambda: movers.migrate_live(uuid),
        lambda: movers.resize(uuid),
        lambda: movers.act(shelving.shelve, uuid, offload_time_s=0),
    ):
        with pytest.raises(Conflict, match="may still be migrating"):
            attempt()
        movers.judge()
    movers.tell("send", uuid, "It was stopped.")
    assert movers.migrate(uuid, host="b2").fault is None
    movers.close()


@pytest.mark.parametrize("is_in_time", [False, True])
def test_an_aborted_migration_keeps_the_server_on_its_source(
    movers: Movers, is_in_time: bool
) -> None:
    uuid = movers.boot()
    number = movers.migrate_live(uuid).migration_id
    with pytest.raises(WrongMigrationState):
        movers.act(migrations.force_complete, uuid, number)
    movers.tell("expect", uuid)
    movers.act(migrations.force_complete, uuid, number)
    movers.act(migrations.abort, uuid, number, in_queue=False)
    if is_in_time:
        movers.tell("abort", uuid)
        movers.tell("send", uuid, "It was stopped.")
        assert movers.state(uuid) == ("ACTIVE", None, "a1")
        assert movers.migration(uuid).status == MigrationStatus.CANCELLING
        movers.finish()
        assert movers.migration(uuid).status == MigrationStatus.CANCELLED
    else:
        movers.tell("abort", uuid, "It is gone.")
        movers.tell("send", uuid)
        assert movers.state(uuid) == ("ACTIVE", None, "b1")
        assert movers.migration(uuid).status == MigrationStatus.COMPLETED
    movers.finish()


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_server_deleted_while_it_is_sent_leaves_nothing(movers: Movers, has_begun: bool) -> None:
    uuid = movers.boot()
    movers.migrate_live(uuid)
    if has_begun:
        movers.tell("expect", uuid)
    movers.delete(uuid)
    movers.judge()
    # The destination is ordered to destroy the server before the server arrives.
    for order in movers.waiting("destroy"):
        movers.settle(order)
    assert movers.server(uuid).status == Status.DELETED
    migration = movers.migration(uuid)
    if has_begun:
        movers.wait()
        movers.sweep()
        assert movers.held(migration.uuid) == {"b1": SMALL_TAKES}
        movers.tell("send", uuid)
        # So the destination gets a second order when the server has arrived. The allocations stay
        # until then.
        assert ("destroy", "b1") in movers.pending_orders()
        assert movers.held(migration.uuid) == {"b1": SMALL_TAKES}
    movers.finish()
    assert movers.migration(uuid).status == MigrationStatus.CANCELLED
    assert movers.held(migration.uuid) == {}
    assert movers.usage() == (0, 0, 0)


def test_migrations_are_listed_by_their_properties(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("b1"), reported("b2"))
    uuid = movers.boot()
    selection = MigrationSelection
    first = movers.migrate(uuid, host="b1").migration_id
    movers.finish()
    movers.act(resizing.confirm, uuid)
    movers.finish()
    movers.wait(1)
    second = movers.migrate_live(uuid, host="b2").migration_id
    every = movers.cloud.read(lambda tx: migrations.page(tx, selection()))
    assert [each.id for each in every] == [second, first]
    behind = selection(marker=every[0].uuid, limit=1)
    assert [e.id for e in movers.cloud.read(lambda tx: migrations.page(tx, behind))] == [first]
    for narrow, found in (
        (selection(host="b2"), [second]),
        (selection(host="b1"), [second, first]),
        (selection(source_host="b1"), [second]),
        (selection(kind="migration"), [first]),
        (selection(statuses=(MigrationStatus.CONFIRMED,)), [first]),
        (selection(since=movers.now), [second]),
        (selection(project_id="other"), []),
    ):
        shown = movers.cloud.read(partial(migrations.page, selection=narrow))
        assert [each.id for each in shown] == found
    with pytest.raises(Invalid):
        movers.cloud.read(lambda tx: migrations.page(tx, selection(marker="none")))
    with pytest.raises(NotFound):
        movers.cloud.read(lambda tx: migrations.get(tx, "other", every[1].id))
    movers.close()
