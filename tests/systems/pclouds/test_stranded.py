"""A pcloud is not deleted while shelved servers depend on it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.errors import Conflict, InUse, Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Dedicating
from innkeeper.store.queries.compute import dedications, server_actions, servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.moves import dedicated_hosts
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.context import PcloudContext
from tests.support import server_rows
from tests.support.clouds import Numbers
from tests.support.stores import NOW

IDS = Numbers()
OWNER, GUEST, STRANGER = "red", "green", "blue"
INITIATOR = Initiator("req-1", OWNER, "ann")
CONTEXT = PcloudContext(Dedicating(), 60.0, INITIATOR, NOW)
WITHIN_S = 60.0


def pcloud(store: Store, *guests: str, name: str = "p") -> str:
    """A pcloud without hosts."""
    uuid = IDS.uuid()
    with store.write() as tx:
        made = pclouds.create(tx, uuid, OWNER, {"name": name}, CONTEXT)
        for each in guests:
            pclouds.authorize(tx, made, each, CONTEXT)
    return uuid


def shelved(store: Store, hints: dict[str, Any], project_id: str = OWNER, **more: Any) -> ServerId:
    """A server that is shelved and on no host, by default."""
    with store.write() as tx:
        number = IDS.seed() % 2**40
        facts = {
            "status": Status.SHELVED_OFFLOADED,
            "task_state": None,
            "launched_at": NOW,
            "hints": hints,
            "project_id": project_id,
            **more,
        }
        servers.insert_many(tx, [server_rows.row(number, **facts)])
    return server_rows.uuid(number)


def delete(store: Store, uuid: str, **more: Any) -> None:
    with store.write() as tx:
        pclouds.delete(tx, pclouds.get(tx, uuid), CONTEXT, **more)


def change(tx: Tx, server: ServerId, **wanted: str) -> None:
    dedicated_hosts.change(tx, server, INITIATOR, **wanted, now=NOW)


def test_stranded_servers_have_no_other_place(store: Store) -> None:
    mine, other = pcloud(store, GUEST), pcloud(store, GUEST)
    loose = mine.replace("-", "").upper()
    kept = {
        shelved(store, {"pcloud": mine, "pcloud_host": "a"}),
        shelved(store, {"pcloud": [mine], "colour": "blue"}, GUEST),
        shelved(store, {"pcloud": [IDS.uuid(), loose]}),
        shelved(store, {"pcloud": mine}, task_state=Task.UNSHELVING),
    }
    for hints, more in (
        ({"pcloud": other}, {}),
        ({"pcloud": [mine, other]}, {}),
        ({"pcloud": [mine, other]}, {"project_id": GUEST}),
        # These servers can never use the pcloud again, so they do not prevent its deletion.
        ({"pcloud": mine}, {"project_id": STRANGER}),
        ({"pcloud": [mine, other]}, {"project_id": STRANGER}),
        ({"pcloud": mine, "pcloud_unasked": True}, {}),
        ({"pcloud": mine}, {"host": "a"}),
        ({"pcloud": mine}, {"host": "a", "status": Status.ACTIVE}),
        ({"pcloud": mine}, {"status": Status.ERROR}),
        ({"pcloud": mine}, {"deleted_at": NOW}),
        ({"colour": mine, "say": '"pcloud"'}, {}),
        ({}, {}),
    ):
        shelved(store, hints, **more)
    with store.read() as tx:
        found = dedicated_hosts.stranded_by(tx, mine)
    assert {each.uuid for each in found} == kept
    assert len(found) == len(kept)


def test_a_refusal_lists_only_servers_of_the_callers_project(store: Store) -> None:
    mine = pcloud(store, GUEST)
    theirs = shelved(store, {"pcloud": mine}, GUEST)
    own = [shelved(store, {"pcloud": mine}) for _ in range(pclouds.LISTED_MAX + 2)]
    with pytest.raises(InUse) as refused:
        delete(store, mine)
    told = refused.value.message
    assert f"{len(own)} of your project (" in told
    assert "and 1 of other projects" in told
    assert sum(each in told for each in own) == pclouds.LISTED_MAX
    assert theirs not in told
    with store.read() as tx:
        assert pclouds.get(tx, mine).uuid == mine


def test_a_forced_deletion_keeps_the_servers_hints(store: Store) -> None:
    mine = pcloud(store)
    server = shelved(store, {"pcloud": mine})
    delete(store, mine, is_forced=True)
    with store.read() as tx:
        assert pclouds.get_or_none(tx, mine) is None
        found = servers.by_uuid(tx, server)
        assert found is not None
        assert found.hints == {"pcloud": mine}
        (last, *_) = pclouds.actions(tx, mine, limit=1)
        assert (last.action, last.detail) == ("delete", "shelved servers that name it: 1")
        with pytest.raises(Conflict, match="no longer exists, or the project may no longer use it"):
            dedicated_hosts.demand_there(tx, found, NOW)


def test_a_server_without_hints_and_one_with_both_kinds(store: Store) -> None:
    mine = pcloud(store)
    both = shelved(store, {"pcloud": mine, "reservation": IDS.uuid(), "colour": "blue"})
    none = shelved(store, {})
    with store.write() as tx:
        change(tx, both, pcloud="p")
        change(tx, none)
    with store.read() as tx:
        hints = servers.hints_of(tx, [both, none])
        assert hints == {both: {"pcloud": mine, "colour": "blue"}, none: {}}
        for each in (both, none):
            (done,) = server_actions.of_server(tx, each)
            assert (done.action, done.message) == ("setDedicatedHosts", None)


def test_a_name_that_several_pclouds_have_changes_nothing(store: Store) -> None:
    first, _ = pcloud(store), pcloud(store)
    server = shelved(store, {"pcloud": first})
    with pytest.raises(Invalid, match="Several pclouds are called 'p'"), store.write() as tx:
        change(tx, server, pcloud="p")
    with store.read() as tx:
        assert servers.hints_of(tx, [server]) == {server: {"pcloud": first}}
        assert server_actions.of_server(tx, server) == []


def test_a_server_that_may_still_be_on_a_host_is_not_changed(store: Store) -> None:
    # The host got the start order too late, and has not confirmed the server's removal.
    server = shelved(store, {}, host="a")
    with pytest.raises(Conflict, match="has not confirmed the offload"), store.write() as tx:
        change(tx, server)


def test_a_server_that_cannot_be_shelved_gets_no_order(store: Store) -> None:
    for status, told in (
        (Status.PAUSED, "It is PAUSED: shelve it first, and wait until that is done."),
        (Status.ERROR, "It is ERROR."),
    ):
        server = shelved(store, {}, status=status, host="a")
        with pytest.raises(Conflict) as refused, store.write() as tx:
            change(tx, server)
        assert refused.value.message.endswith(f"has neither a host nor a task. {told}")


def test_a_boot_and_a_deletion_at_the_same_moment_take_turns(
    store: Store, opened: Callable[[], Store]
) -> None:
    """The second request waits for its turn, and sees the result of the first."""
    rival = opened()
    mine = pcloud(store)
    server = shelved(store, {})
    with ThreadPoolExecutor(1) as threads:
        with store.write() as tx:
            change(tx, server, pcloud=mine)
            later = threads.submit(delete, rival, mine)
        with pytest.raises(InUse, match="1 of your project"):
            later.result(WITHIN_S)

    def name_it() -> None:
        with rival.write() as tx:
            change(tx, server, pcloud=mine)

    with store.write() as tx:
        change(tx, server)
    with ThreadPoolExecutor(1) as threads:
        with store.write() as tx:
            pclouds.delete(tx, pclouds.get(tx, mine), CONTEXT)
            later = threads.submit(name_it)
        with pytest.raises(Invalid, match="No pcloud that the server's project may use"):
            later.result(WITHIN_S)


def test_servers_on_hosts_are_not_read(store: Store) -> None:
    for number in range(20):
        shelved(store, {"pcloud": "p"}, host=f"host-{number}", status=Status.ACTIVE)
    if store.backend.name != "sqlite":
        return
    with store.read() as tx:
        text = dedications.OFFLOADED.compile(tx.engine, compile_kwargs={"literal_binds": True})
        plan = " ".join(
            str(each) for each in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", {"key": "%"})
        )
    assert "ix_servers_host_deleted_at (host=? AND deleted_at=?)" in plan, plan
