"""Servers in child zones: their states, their quota usage, and the decision on a boot batch."""

from __future__ import annotations

from datetime import timedelta

import pytest

from innkeeper.domain.errors import NotFound, QuotaExceeded
from innkeeper.domain.ids import ServerId
from innkeeper.domain.limits import Limits
from innkeeper.domain.zone_tree import ChildZone, HeldServer, ZoneServerState
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot import child_entries
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import remote
from tests.support.audited_zones import BELOW, PROJECT, add_child, add_server, server_below
from tests.support.stores import NOW

SOON, LATER = NOW + timedelta(seconds=1), NOW + timedelta(seconds=60)
NO_LIMITS = Limits(servers=-1, vcpus=-1, memory_mb=-1)
OTHERS = [f"c0000000-0000-4000-8000-0000000000{number}" for number in (11, 12, 13)]


def used(tx: Tx, project_id: str) -> QuotaUsage:
    """Return the quota usage of a project or a zone parent."""
    return quota_usages.of_project(tx, project_id)


def a_child(store: Store) -> ChildZone:
    """Add a child zone."""
    with store.write() as tx:
        return add_child(tx)


def test_a_batch_is_decided_once(store: Store) -> None:
    """The repair and a late process cannot both decide."""
    child = a_child(store)
    with store.write() as tx:
        for uuid in OTHERS:
            add_server(tx, server_below(child, uuid, state=ZoneServerState.BUILDING, batch_min=3))
        assert remote.touch(tx, OTHERS, NOW)
    with store.write() as tx:
        assert [each.uuid for each in remote.undecided(tx, NOW, 10)] == OTHERS
        assert remote.undecided(tx, NOW - timedelta(seconds=1), 10) == []
        assert remote.decide(tx, OTHERS)
        assert remote.settle(tx, OTHERS, LATER)
    with store.write() as tx:
        assert not remote.touch(tx, OTHERS, LATER)
        assert not remote.decide(tx, OTHERS)
        assert remote.undecided(tx, LATER, 10) == []
        assert {each.state for each in remote.by_uuids(tx, OTHERS)} == {ZoneServerState.BUILT}


def test_a_server_that_is_undone_is_not_settled(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        add_server(tx, server_below(child, state=ZoneServerState.BUILDING, batch_min=1))
        assert remote.begin_undo(tx, [BELOW], NOW) == 1
        assert not remote.settle(tx, [BELOW], NOW)
        assert [each.uuid for each in remote.undecided(tx, NOW, 10)] == [BELOW]
        assert remote.undone(tx, NOW, 10) == [], "its batch is not decided"
        assert remote.decide(tx, [BELOW])
        assert [each.uuid for each in remote.undone(tx, NOW, 10)] == [BELOW]


@pytest.mark.parametrize("count", [1, 3])
def test_servers_of_several_batches_are_settled_together(store: Store, count: int) -> None:
    """A server that is being undone, or that its user deletes, keeps that state."""
    child = a_child(store)
    building, built = ZoneServerState.BUILDING, ZoneServerState.BUILT
    with store.write() as tx:
        for number, uuid in enumerate(OTHERS[:count]):
            add_server(tx, server_below(child, uuid, state=building, batch_min=number))
        assert remote.settle_together(tx, [remote.BuiltBelow(OTHERS[:count], LATER)]) == [None]
        found = remote.by_uuids(tx, OTHERS)
        assert [(e.state, e.batch_min, e.updated_at) for e in found] == [(built, 0, LATER)] * count
    with store.write() as tx:
        remote.begin_undo(tx, OTHERS[:1], NOW)
        if count > 1:
            remote.begin_delete(tx, OTHERS[1], NOW)
        several = [remote.BuiltBelow([uuid], LATER) for uuid in OTHERS[:count]]
        assert remote.settle_together(tx, several) == [None] * count
        found = sorted(remote.by_uuids(tx, OTHERS), key=lambda each: each.uuid)
        states = [ZoneServerState.UNDOING, ZoneServerState.DELETING, built]
        assert [each.state for each in found] == states[:count]
        assert [each.updated_at for each in found] == [NOW, NOW, LATER][:count]


def test_what_a_child_deletes_is_looked_at_in_turn(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        for uuid in OTHERS[:2]:
            add_server(tx, server_below(child, uuid))
            remote.begin_delete(tx, uuid, NOW)
        remote.look_later(tx, OTHERS[:1], LATER)
        assert [each.uuid for each in remote.deleted(tx, LATER, 1)] == [OTHERS[1]]
        assert remote.deleted(tx, NOW - timedelta(seconds=1), 10) == []


def test_servers_that_changed_are_compared_soon(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        for uuid in OTHERS:
            add_server(tx, server_below(child, uuid))
        remote.look_soon(tx, OTHERS[1], LATER)
        recent = remote.changed_since(tx, ZoneServerState.BUILT, NOW, 10)
        assert [each.uuid for each in recent] == [OTHERS[1]]


def test_servers_below_count_and_an_audit_counts_them_too(store: Store) -> None:
    """They count for the project, and also for the project's zone parent."""
    child = a_child(store)
    with store.write() as tx:
        add_server(tx, server_below(child))
        add_server(tx, server_below(child, OTHERS[0], project_id="up:a"))
        add_server(tx, server_below(child, OTHERS[1], project_id="up:b"))
        assert used(tx, "up:").servers == 2
    assert audit.look(Database(store)) == []
    with store.write() as tx:
        (row,) = remote.by_uuids(tx, [OTHERS[0]])
        zone_servers.resize(tx, row, 5, 1024)
        assert (used(tx, "up:a").vcpus, used(tx, "up:").vcpus) == (5, 7)
        assert zone_servers.forget(tx, [BELOW, OTHERS[1]]) == 2
        assert used(tx, PROJECT).servers == 0
    assert audit.look(Database(store)) == []
    with store.write() as tx:
        remote.remove(tx, [OTHERS[0]])
    wrong = audit.look(Database(store))
    assert {each.key for each in wrong} == {"up:a", "up:"}
    assert list(audit.repair(Database(store), wrong, lambda: NOW))
    assert audit.look(Database(store)) == []


def test_a_parent_sees_only_its_own_servers_page_by_page(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        for uuid in OTHERS:
            add_server(tx, server_below(child, uuid, project_id="up:a"))
        add_server(tx, server_below(child, project_id="upper:a"))
        first = zone_servers.held_page(tx, "up:", None, 2)
        assert [each.uuid for each in first] == OTHERS[:2]
        rest = zone_servers.held_page(tx, "up:", OTHERS[1], 2)
        assert [each.uuid for each in rest] == OTHERS[2:]
        assert [each.uuid for each in zone_servers.held(tx, "up:", [*OTHERS, BELOW])] == OTHERS


def test_an_unknown_server_of_a_child_can_be_adopted(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        held = HeldServer(BELOW, PROJECT, "user", "r-1", 4, 2048)
        zone_servers.adopt(tx, child.id, held, NOW)
        assert used(tx, PROJECT).vcpus == 4
    assert audit.look(Database(store)) == []


def test_a_server_that_its_user_deletes_before_the_decision_stays_until_then(store: Store) -> None:
    """Otherwise, the rest of the batch would be undone, although all its servers were built."""
    child = a_child(store)
    with store.write() as tx:
        for uuid in OTHERS:
            add_server(tx, server_below(child, uuid, state=ZoneServerState.BUILDING, batch_min=3))
        remote.begin_delete(tx, OTHERS[0], NOW)
        assert zone_servers.forget_decided(tx, OTHERS) == 0
        assert remote.touch(tx, OTHERS, NOW)
        assert [each.uuid for each in remote.undecided(tx, NOW, 10)] == OTHERS
        assert remote.decide(tx, OTHERS)
        remote.settle(tx, OTHERS, LATER)
        states = {str(each.uuid): each.state for each in remote.by_uuids(tx, OTHERS)}
        assert states.pop(OTHERS[0]) == ZoneServerState.DELETING
        assert set(states.values()) == {ZoneServerState.BUILT}
        assert zone_servers.forget_decided(tx, OTHERS[:1]) == 1
        assert used(tx, PROJECT).servers == 2


def test_the_server_of_an_entry_may_be_deleted_before_the_answer(store: Store) -> None:
    child = a_child(store)
    until = NOW + timedelta(seconds=60)
    with store.write() as tx:
        for uuid in OTHERS:
            add_server(tx, server_below(child, uuid, state=ZoneServerState.BUILDING, batch_min=1))
        remote.begin_delete(tx, OTHERS[0], NOW)
        remote.begin_undo(tx, OTHERS[1:2], NOW)
        answers = [child_entries.settle(tx, ServerId(each), until, NOW) for each in OTHERS]
        assert answers == [True, False, True]
        assert zone_servers.forget_decided(tx, OTHERS[:1]) == 1
        assert not child_entries.settle(tx, ServerId(BELOW), until, NOW), "it is unknown"


def test_the_larger_flavor_counts_while_a_server_below_is_resized(store: Store) -> None:
    child = a_child(store)
    limits = Limits(servers=-1, vcpus=4, memory_mb=-1)
    with store.write() as tx:
        add_server(tx, server_below(child, vcpus=2, memory_mb=512))
        begun = zone_servers.begin_resize(tx, BELOW, (4, 256), LATER, limits)
        assert (begun.before, begun.during) == ((2, 512), (4, 512))
        assert (used(tx, PROJECT).vcpus, used(tx, PROJECT).memory_mb) == (4, 512)
        with pytest.raises(QuotaExceeded, match="cores"):
            zone_servers.begin_resize(tx, BELOW, (5, 256), LATER, limits)
        # A quota below the usage does not stop a smaller flavor.
        less = Limits(servers=-1, vcpus=1, memory_mb=-1)
        begun = zone_servers.begin_resize(tx, BELOW, (1, 256), LATER, less)
        assert (begun.before, begun.during) == ((4, 512), (4, 512))


def test_a_resize_of_a_server_that_is_gone_counts_nothing(store: Store) -> None:
    with store.write() as tx, pytest.raises(NotFound, match=BELOW):
        zone_servers.begin_resize(tx, BELOW, (4, 256), LATER, NO_LIMITS)
    with store.write() as tx:
        assert used(tx, PROJECT).vcpus == 0


ACCEPTED, REFUSED, LOST = True, False, None


@pytest.mark.parametrize(
    ("answers", "vcpus", "may_be_lowered"),
    [
        ({0: ACCEPTED}, 10, True),
        ({0: REFUSED}, 2, True),
        ({0: LOST}, 10, False),
        ({0: ACCEPTED, 1: REFUSED}, 20, False),
        ({1: ACCEPTED, 0: REFUSED}, 20, False),
        ({0: REFUSED, 1: ACCEPTED}, 20, False),
        ({1: REFUSED, 0: REFUSED}, 20, False),
        ({0: LOST, 1: REFUSED}, 20, False),
        ({1: ACCEPTED, 0: ACCEPTED}, 20, False),
    ],
)
def test_resizes_at_the_same_time_count_the_largest_flavor_until_a_repair(
    store: Store, answers: dict[int, bool | None], vcpus: int, *, may_be_lowered: bool
) -> None:
    child = a_child(store)
    with store.write() as tx:
        add_server(tx, server_below(child, vcpus=2, memory_mb=512))
        begun = {
            each: zone_servers.begin_resize(tx, BELOW, (10 + 10 * each, 512), LATER, NO_LIMITS)
            for each in sorted(answers)
        }
        for each, is_accepted in answers.items():
            if is_accepted is not LOST:
                zone_servers.end_resize(tx, BELOW, begun[each], SOON, is_accepted=is_accepted)
        remote.look_soon(tx, BELOW, SOON)
        (row,) = remote.by_uuids(tx, [BELOW])
        assert (row.vcpus, used(tx, PROJECT).vcpus) == (vcpus, vcpus)
        assert (row.updated_at <= SOON) == may_be_lowered


@pytest.mark.parametrize("changes", [True, False])
def test_amounts_of_a_row_that_changed_since_its_comparison_stay(
    store: Store, *, changes: bool
) -> None:
    child = a_child(store)
    with store.write() as tx:
        add_server(tx, server_below(child, vcpus=10, memory_mb=512))
        (compared,) = remote.by_uuids(tx, [BELOW])
        if changes:
            zone_servers.begin_resize(tx, BELOW, (20, 512), LATER, NO_LIMITS)
        assert zone_servers.resize_compared(tx, compared, 1, 512) == int(not changes)
        (row,) = remote.by_uuids(tx, [BELOW])
        expected = 20 if changes else 1
        assert (row.vcpus, used(tx, PROJECT).vcpus) == (expected, expected)


def test_an_accepted_resize_counts_what_a_repair_lowered(store: Store) -> None:
    child = a_child(store)
    with store.write() as tx:
        add_server(tx, server_below(child, vcpus=2, memory_mb=512))
        begun = zone_servers.begin_resize(tx, BELOW, (10, 256), LATER, NO_LIMITS)
        (row,) = remote.by_uuids(tx, [BELOW])
        zone_servers.resize(tx, row, 2, 512)
        zone_servers.end_resize(tx, BELOW, begun, LATER, is_accepted=True)
        assert used(tx, PROJECT).vcpus == 10
