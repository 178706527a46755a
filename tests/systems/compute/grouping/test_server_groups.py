"""Server groups in every store: members, state and quotas."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Conflict, Invalid, NotFound, QuotaExceeded
from innkeeper.domain.grouping import GroupState, ServerGroup, group_of_reservation
from innkeeper.domain.placing import GroupRule
from innkeeper.store.queries.compute import grouping_audit, servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.grouping import groups
from tests.support.server_rows import NOON, row, uuid

GROUP = "0f000000-0000-4000-8000-000000000001"
OTHER = "0f000000-0000-4000-8000-000000000002"


def group(group_uuid: str = GROUP, policy: str = "anti-affinity", **more: int) -> ServerGroup:
    """A group of the project of the server rows."""
    most = more.get("most")
    return ServerGroup(group_uuid, "g", "red", "ann", policy, most, NOON)


def made(tx: Tx, *wanted: ServerGroup) -> list[int]:
    """Write groups and return their rows."""
    return [groups.create(tx, each, UNLIMITED).id for each in wanted]


def populated(tx: Tx) -> tuple[int, int]:
    """Two groups. The first has servers on h1 (2), on h2, on no host, and a deleted one."""
    first, second = made(tx, group(most=2), group(OTHER, "affinity"))
    servers.insert_many(
        tx,
        [
            row(1, host="h1"),
            row(2, host="h1"),
            row(3, host="h2"),
            row(4),
            row(5, host="h2", deleted_at=NOON),
            row(6, host="h2"),
        ],
    )
    groups.add_members(tx, first, [uuid(number) for number in range(1, 6)])
    groups.add_members(tx, second, [uuid(6)])
    groups.add_members(tx, second, [])
    return first, second


def test_what_was_written_is_read(store: Store) -> None:
    with store.write() as tx:
        (written,) = made(tx, group(most=3))
    with store.read() as tx:
        found = groups.get(tx, GROUP.upper().replace("-", ""))
        assert found == ServerGroup(GROUP, "g", "red", "ann", "anti-affinity", 3, NOON, written)
        for nobodys in (OTHER, "g", ""):
            with pytest.raises(NotFound, match=f"Server group {nobodys} could not be found"):
                groups.get(tx, nobodys)


def test_members_are_those_that_are_not_deleted(store: Store) -> None:
    with store.write() as tx:
        first, second = populated(tx)
    with store.read() as tx:
        assert groups.members(tx, groups.get(tx, GROUP)) == tuple(uuid(n) for n in (1, 2, 3, 4))
        found, members = groups.page(tx, "red", limit=10)
        assert [each.id for each in found] == [first, second]
        assert members[second] == (uuid(6),)
        assert groups.page(tx, "blue", limit=10) == ([], {})
        assert [e.id for e in groups.page(tx, None, limit=1, offset=1)[0]] == [second]


def test_a_groups_state_counts_its_members_by_host(store: Store) -> None:
    with store.write() as tx:
        first, _ = populated(tx)
    with store.read() as tx:
        state = groups.rule_for(tx, GROUP, "red")
        rule = GroupRule("anti-affinity", {"h1": 2, "h2": 1}, 2)
        assert state == GroupState(first, rule, members=4)
        # The members without the server that moves.
        moving = groups.rule_of(tx, uuid(2))
        assert moving is not None
        assert (moving.rule.members, moving.members) == ({"h1": 1, "h2": 1}, 3)
        assert groups.rule_of(tx, uuid(7)) is None
        assert groups.uuid_of(tx, uuid(5)) == GROUP
        assert groups.uuid_of(tx, uuid(7)) is None
        # By default, a host may have one member.
        assert groups.rule_for(tx, OTHER, "red").rule.servers_per_host_max == 1


def test_another_projects_group_is_unknown(store: Store) -> None:
    with store.write() as tx:
        made(tx, group())
    with store.read() as tx:
        for uuid_, project in ((GROUP, "blue"), (OTHER, "red"), ("g", "red")):
            with pytest.raises(Invalid, match=f"Server group {uuid_} could not be found"):
                groups.rule_for(tx, uuid_, project)


def test_members_added_in_the_same_transaction_count() -> None:
    before = GroupState(1, GroupRule("affinity", {"h1": 1}), members=2)
    after = groups.joined(before, ["h1", "h2", None])
    assert after == GroupState(1, GroupRule("affinity", {"h1": 2, "h2": 1}), members=5)
    assert before.rule.members == {"h1": 1}
    assert groups.joined(before, []) == before


def test_a_quota_limits_the_members() -> None:
    state = GroupState(1, GroupRule("affinity", {"h1": 3}), members=4)
    assert groups.allowed_count(state, UNLIMITED, 1, 100) == 100
    assert groups.allowed_count(state, 10, 1, 100) == 6
    assert groups.allowed_count(state, 10, 6, 6) == 6
    for limit, least in ((10, 7), (4, 1), (2, 1)):
        with pytest.raises(QuotaExceeded, match="too many servers in group"):
            groups.allowed_count(state, limit, least, 10)


def test_a_quota_limits_the_groups(store: Store) -> None:
    with store.write() as tx:
        assert groups.create(tx, group(), 1).uuid == GROUP
        with pytest.raises(QuotaExceeded, match="too many server groups"):
            groups.create(tx, group(OTHER), 1)
        assert groups.count(tx, "red") == 1
        with pytest.raises(Invalid, match="Only anti-affinity policy supports rules"):
            groups.create(tx, group(OTHER, "soft-affinity", most=1), UNLIMITED)
        assert groups.count(tx, "blue") == 0


def test_groups_of_leases_count_towards_no_quota(store: Store) -> None:
    owned, name = group_of_reservation(OTHER)
    with store.write() as tx:
        made(tx, replace(group(owned), name=name), replace(group(), name=name))
        assert groups.count(tx, "red") == 1
        with pytest.raises(QuotaExceeded):
            groups.create(tx, group(OTHER), 1)
        assert groups.create(tx, group(OTHER), 2).uuid == OTHER
        with pytest.raises(Conflict, match="belongs to a lease"):
            groups.delete(tx, owned)
        groups.delete(tx, owned, by_lease=True)
        groups.delete(tx, GROUP)
        assert groups.count(tx, "red") == 1


def test_deleting_a_group_keeps_its_servers(store: Store) -> None:
    with store.write() as tx:
        populated(tx)
        groups.delete(tx, GROUP)
        with pytest.raises(NotFound):
            groups.delete(tx, GROUP)
    with store.read() as tx:
        assert groups.uuid_of(tx, uuid(1)) is None
        assert groups.uuid_of(tx, uuid(6)) == OTHER
        found = servers.by_uuid(tx, uuid(1))
        assert found is not None
        assert found.updated_at < NOON + timedelta(seconds=1)


def test_an_audit_finds_invalid_members(store: Store) -> None:
    with store.write() as tx:
        (number,) = made(tx, group())
        servers.insert_many(tx, [row(1, task_state="deleting"), row(2, project_id="blue")])
        groups.add_members(tx, number, [uuid(1), uuid(2), uuid(3)])
    with store.read() as tx:
        found = grouping_audit.strayed_members(tx)
    assert sorted(row[0] for row in found) == [uuid(2), uuid(3)]
