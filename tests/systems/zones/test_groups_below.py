"""Server groups with members in child zones, groups of zone parents, and the reach of hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from innkeeper.domain.compute import UNLIMITED, Booted, BootRequest, Definitions
from innkeeper.domain.errors import Invalid, QuotaExceeded
from innkeeper.domain.grouping import GroupDefinition, ServerGroup
from innkeeper.domain.limits import Limits
from innkeeper.domain.placing import GroupPolicy
from innkeeper.domain.zone_tree import ChildZone, ZoneServerState
from innkeeper.domain.zones import Destination, ZonePlan
from innkeeper.store.queries.compute import grouping_audit
from innkeeper.store.queries.zones import children
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot import definitions, dry_run
from innkeeper.systems.compute.boot.entries import EntryStale
from innkeeper.systems.compute.grouping import groups, reach
from innkeeper.systems.compute.grouping.reach import EVERYWHERE, Reach
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import remote
from tests.support.audited_zones import BELOW, PROJECT, add_child, add_server, server_below
from tests.support.clouds import NOW, SMALL, Cloud, cloud_in, reported

GROUP = "0f000000-0000-4000-8000-000000000001"
TOGETHER = "0f000000-0000-4000-8000-000000000002"
OTHER_CHILD = "c0000000-0000-4000-8000-000000000009"
MORE = [f"c0000000-0000-4000-8000-0000000000{number}" for number in (11, 12, 13)]
TOLD = GroupDefinition(GROUP, GroupPolicy.ANTI_AFFINITY)
HINT = {"group": GROUP}
FEW = Limits(-1, -1, -1, server_group_members=2)


def group(tx: Tx, uuid: str = GROUP, policy: str = GroupPolicy.ANTI_AFFINITY) -> ServerGroup:
    """Add a group."""
    return groups.create(tx, ServerGroup(uuid, "g", PROJECT, "user", policy, None, NOW), UNLIMITED)


def join(
    tx: Tx, child: ChildZone, made: ServerGroup | None, uuid: str = BELOW, **more: Any
) -> None:
    """Add a server in a child zone to a group."""
    server = server_below(child, uuid, **more)
    add_server(tx, server)
    zone_servers.join(tx, made, [server], None)


def test_members_below_are_members_until_they_are_gone(store: Store) -> None:
    with store.write() as tx:
        child, made = add_child(tx), group(tx)
        join(tx, child, made)
        join(tx, child, made, MORE[0], state=ZoneServerState.BUILDING)
        join(tx, child, made, MORE[1], state=ZoneServerState.UNDOING)
        assert set(groups.members(tx, made)) == {BELOW, MORE[0]}
        state = groups.rule_for(tx, GROUP, PROJECT)
        assert (state.members, state.rule.members, state.rule.is_elsewhere) == (2, {}, False)
        assert groups.counts_below(tx, made.id) == {child.id: 2}
        assert list(grouping_audit.strayed_members(tx)) == []
        zone_servers.forget(tx, [BELOW, MORE[1]])
        assert groups.members(tx, made) == (MORE[0],)
        assert groups.uuid_of(tx, BELOW) is None
        remote.remove(tx, [MORE[0]])
        assert [row[0] for row in grouping_audit.strayed_members(tx)] == [MORE[0]]


def test_the_quota_of_members_is_checked_when_servers_join(store: Store) -> None:
    with store.write() as tx:
        child, made = add_child(tx), group(tx)
        zone_servers.join(tx, made, [server_below(child), server_below(child, MORE[0])], FEW)
        add_server(tx, server_below(child))
        with pytest.raises(QuotaExceeded, match="too many servers in group"):
            zone_servers.join(tx, made, [server_below(child, each) for each in MORE[1:]], FEW)


def test_affinity_with_members_below_allows_no_host_here(store: Store) -> None:
    with store.write() as tx:
        child, made = add_child(tx), group(tx, TOGETHER, GroupPolicy.AFFINITY)
        assert not groups.rule_for(tx, TOGETHER, PROJECT).rule.is_elsewhere
        join(tx, child, made)
        assert groups.rule_for(tx, TOGETHER, PROJECT).rule.is_elsewhere
        remote.begin_undo(tx, [BELOW], NOW)
        assert not groups.rule_for(tx, TOGETHER, PROJECT).rule.is_elsewhere


def test_a_zone_parents_group_is_stored_once_and_pruned_when_empty(store: Store) -> None:
    with store.write() as tx:
        assert groups.of_parent(tx, TOLD) is None
        assert groups.state_of_parent(tx, TOLD).group_id == 0
        for project in ("up:lab", "over:lab"):
            groups.store_of_parent(tx, TOLD, project, "up:ann", NOW)
        made = groups.of_parent(tx, TOLD)
        assert made is not None
        assert (made.project_id, made.uuid) == ("up:lab", TOLD.uuid)
        assert made.uuid != GROUP
        join(tx, add_child(tx), made, project_id="over:lab")
        assert list(grouping_audit.strayed_members(tx)) == [], "both came from zone parents"
        own = group(tx)
        late = NOW + 2 * groups.EMPTY_FOR
        assert groups.prune_of_parents(tx, late) == 0
        zone_servers.forget(tx, [BELOW])
        assert groups.prune_of_parents(tx, NOW + timedelta(seconds=1)) == 0
        assert groups.prune_of_parents(tx, late) == 1
        assert groups.of_parent(tx, TOLD) is None
        assert groups.get(tx, GROUP) == own


def test_affinity_with_members_that_only_the_zone_parent_knows(store: Store) -> None:
    told = GroupDefinition(TOGETHER, GroupPolicy.AFFINITY, has_members=True)
    with store.write() as tx:
        assert groups.state_of_parent(tx, told).rule.is_elsewhere
        assert not groups.state_of_parent(tx, replace(told, has_members=False)).rule.is_elsewhere
        apart = replace(told, policy=GroupPolicy.ANTI_AFFINITY)
        assert not groups.state_of_parent(tx, apart).rule.is_elsewhere


# -- where hints reach ---------------------------------------------------------------------------


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts."""
    started = cloud_in(tmp_path, reported("a"), reported("b"))
    yield started
    started.close()


@pytest.mark.parametrize(
    "hints",
    [
        {"pcloud": "x"},
        {"pcloud_host": "x"},
        {"reservation": "x"},
        {"build_near_host_ip": "192.0.2.1", "cidr": "/24"},
        {"query": '["=","$hypervisor_hostname","a"]'},
        {"query": "["},
        {"group": "unknown"},
        {"group": ["x", "y"]},
    ],
)
def test_some_hints_stay_in_this_zone(cloud: Cloud, hints: Mapping[str, Any]) -> None:
    request = cloud.request(hints=hints)
    assert cloud.read(lambda tx: reach.of(tx, request)) == Reach(())


def reached_by(cloud: Cloud, **more: Any) -> Reach:
    """The zones that a request with these fields can reach."""
    request = cloud.request(**more)
    found: Reach = cloud.read(lambda tx: reach.of(tx, request))
    return found


def test_other_hints_reach_all_zones(cloud: Cloud) -> None:
    for hints in ({}, {"rack": "7"}, {"query": '[">","$free_ram_mb",1]'}, {"filters": ["x"]}):
        assert reached_by(cloud, hints=hints) == EVERYWHERE
    assert reached_by(cloud, forced_host="a") == Reach(())
    assert reached_by(cloud, forced_host="of-a-child") == EVERYWHERE


def test_servers_near_others_are_asked_of_the_zones_that_have_them(cloud: Cloud) -> None:
    def write(tx: Tx) -> tuple[int, int]:
        one, two = add_child(tx), add_child(tx, OTHER_CHILD, "two")
        add_server(tx, server_below(one))
        add_server(tx, server_below(two, MORE[0], project_id="others"))
        add_server(tx, server_below(two, MORE[1], project_id="up:a"))
        add_server(tx, server_below(one, MORE[2], project_id="over:a"))
        return one.id, two.id

    one, two = cloud.write(write)
    told = Definitions(SMALL)

    near = {"same_host": [BELOW, MORE[0]]}
    assert reached_by(cloud, hints=near).children == {one}
    assert reached_by(cloud, hints=near, is_admin=True).children == {one, two}
    near = {"same_host": MORE[1:]}
    of_up = reached_by(cloud, hints=near, project_id="up:b", definitions=told)
    assert of_up.children == {two}
    assert reached_by(cloud, hints={"different_host": [BELOW]}).children is None


def test_affinity_reaches_only_the_zone_with_members(cloud: Cloud) -> None:
    one, two = cloud.write(lambda tx: (add_child(tx).id, add_child(tx, OTHER_CHILD, "two").id))
    cloud.write(lambda tx: group(tx, TOGETHER, GroupPolicy.AFFINITY))
    request = cloud.request(hints={"group": TOGETHER})
    told = GroupDefinition(TOGETHER, GroupPolicy.AFFINITY)

    def look() -> tuple[Reach, list[bool]]:
        admitted = cloud.read(lambda tx: [reach.admits(tx, request, {each}) for each in (one, two)])
        return reached_by(cloud, hints={"group": TOGETHER}), admitted

    assert look() == (Reach(None, True, told), [True, True])
    cloud.write(lambda tx: join(tx, _child(tx, two), groups.get(tx, TOGETHER)))
    reached, admitted = look()
    assert set(reached.children or ()) == {two}
    assert reached.group == replace(told, has_members=True)
    assert admitted == [False, True]
    cloud.write(lambda tx: zone_servers.forget(tx, [BELOW]))
    (made,) = cloud.boot(cloud.request(hints={"group": TOGETHER}))
    assert isinstance(made, Booted)
    assert look() == (Reach((), True, replace(told, has_members=True)), [False, False])


def _child(tx: Tx, child_id: int) -> ChildZone:
    return next(each for each in children.every(tx) if each.id == child_id)


# -- boots of a zone parent ----------------------------------------------------------------------


def of_parent(cloud: Cloud, told: GroupDefinition, **more: Any) -> BootRequest:
    """A zone parent's request for a server in a group."""
    settled: dict[str, Any] = {
        "project_id": "up:lab",
        "hints": {"group": told.key},
        "definitions": Definitions(SMALL, group=told),
        **more,
    }
    return cloud.request(**settled)


def entry(cloud: Cloud, told: GroupDefinition, host: str, **more: Any) -> BootRequest:
    """A zone parent's request with an entry for a host."""
    request = of_parent(cloud, told, **more)
    provider = cloud.host(host).provider_uuid
    return msgspec.structs.replace(
        request,
        destination=Destination(request.server_ids[0], host, provider),
        entry_id=cloud.ids.uuid(),
        expires_at=NOW + timedelta(seconds=60),
    )


def begin_build(cloud: Cloud, told: GroupDefinition) -> None:
    """Store a group, as a build does at its beginning."""
    cloud.write(lambda tx: groups.store_of_parent(tx, told, "up:lab", "up:ann", NOW))


def test_entries_for_one_host_are_for_one_member(cloud: Cloud) -> None:
    """This includes entries of two batches that share a transaction."""
    begin_build(cloud, TOLD)
    first, second, third = cloud.boot(
        entry(cloud, TOLD, "a"), entry(cloud, TOLD, "a"), entry(cloud, TOLD, "b")
    )
    assert isinstance(first, Booted) and isinstance(second, EntryStale)
    assert isinstance(third, Booted)
    (late,) = cloud.boot(entry(cloud, TOLD, "b"))
    assert isinstance(late, EntryStale)
    cloud.judge()


def test_entries_of_two_processes_for_one_host_are_for_one_member(cloud: Cloud) -> None:
    begin_build(cloud, TOLD)
    other = cloud.beside()
    requests = [entry(each, TOLD, "a") for each in (cloud, other)]
    answers = [
        each.boot(request)[0] for each, request in zip((cloud, other), requests, strict=True)
    ]
    assert [type(each) for each in answers] == [Booted, EntryStale]
    other.close()


def test_a_group_that_was_deleted_meanwhile_is_not_joined(cloud: Cloud) -> None:
    (answer,) = cloud.boot(entry(cloud, TOLD, "a"))
    assert isinstance(answer, EntryStale)


def test_a_plan_for_a_zone_parent_stores_nothing_and_knows_the_members(cloud: Cloud) -> None:
    def planned(told: GroupDefinition) -> set[str]:
        request = of_parent(cloud, told, server_ids=tuple(cloud.ids.uuid() for _ in range(3)))
        request = msgspec.structs.replace(request, count_max=3)
        made: ZonePlan = cloud.decide(lambda tx, it: dry_run.plan(tx, it, request), NOW)
        assert made.count_allowed == 3, "the quota counts where the request came in"
        return {each.destination.host for each in made.servers}

    assert planned(TOLD) == {"a", "b"}
    assert cloud.read(lambda tx: groups.of_parent(tx, TOLD)) is None
    begin_build(cloud, TOLD)
    cloud.boot(entry(cloud, TOLD, "a"))
    assert planned(TOLD) == {"b"}
    assert planned(replace(TOLD, servers_per_host_max=2)) == {"b"}, "the stored rule counts"
    near = GroupDefinition(TOGETHER, GroupPolicy.AFFINITY)
    assert len(planned(near)) == 1
    assert planned(replace(near, has_members=True)) == set()


def test_servers_to_stay_near_or_away_from_are_skipped_if_they_are_elsewhere(cloud: Cloud) -> None:
    begin_build(cloud, TOLD)
    first, second = entry(cloud, TOLD, "a"), entry(cloud, TOLD, "b", project_id="over:lab")
    cloud.boot(first, second)
    mine, theirs = first.server_ids[0], second.server_ids[0]

    def planned(**hints: Any) -> set[str]:
        request = cloud.request(
            project_id="up:lab", hints=hints, definitions=Definitions(SMALL), count_max=1
        )
        made: ZonePlan = cloud.decide(lambda tx, it: dry_run.plan(tx, it, request), NOW)
        return {each.destination.host for each in made.servers}

    assert planned(same_host=[mine, BELOW]) == {"a"}
    assert planned(same_host=[BELOW]) == planned(same_host=[theirs]) == set()
    assert planned(different_host=[mine, BELOW]) == {"b"}
    assert planned(different_host=[theirs]) == {"a"}


def test_definitions_of_groups_are_checked_and_told_on(cloud: Cloud) -> None:
    cloud.write(group)
    told = cloud.read(lambda tx: definitions.of(tx, cloud.request(hints=HINT)))
    assert told.group == TOLD
    passed = of_parent(cloud, replace(TOLD, has_members=True))
    assert cloud.read(lambda tx: definitions.of(tx, passed)).group == TOLD
    definitions.check(told, SMALL.flavor_id, None)
    for wrong in (
        replace(TOLD, key="x"),
        replace(TOLD, policy="near"),
        replace(TOLD, servers_per_host_max=0),
        replace(TOLD, servers_per_host_max=2**40),
    ):
        with pytest.raises(Invalid, match="invalid server group"):
            definitions.check(replace(told, group=wrong), SMALL.flavor_id, None)
