"""Manage server groups: their members, and the rules for the members' placement.

Always true: a group and its members belong to one project. A membership is written in the
transaction that writes the server, or that records the server of a child zone. Deleting a group
does not affect its servers.

A zone parent describes its groups with each request. This zone stores such a group when the first
server joins it, so that later moves follow its policy. If several zone parents of one tree know a
group's key, they can use the same group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Conflict, Invalid, NotFound, QuotaExceeded
from innkeeper.domain.grouping import (
    OF_RESERVATION,
    GroupDefinition,
    GroupState,
    Members,
    ServerGroup,
)
from innkeeper.domain.ids import ServerId, canonical_uuid
from innkeeper.domain.placing import GroupPolicy, GroupRule
from innkeeper.store.queries.compute import server_groups
from innkeeper.store.transactions import Tx

NAME_OF_PARENTS = "group of a zone parent"
EMPTY_FOR = timedelta(hours=1)
"""How long a zone parent's group is kept without members. This is much longer than any boot
takes."""
TOO_MANY_MEMBERS = "Quota exceeded, too many servers in group"

# Queries that are re-exported unchanged.
uuid_of = server_groups.uuid_of_server
leave = server_groups.remove_members
counts_below = server_groups.counts_below


def count(tx: Tx, project_id: str) -> int:
    """Return the number of a project's groups, without the groups of its reservations.

    The groups of reservations are limited by lease quotas, because the project can neither create
    nor delete them by itself.
    """
    of_leases = server_groups.named(tx, project_id, OF_RESERVATION)
    return server_groups.count(tx, project_id) - sum(each.is_of_lease for each in of_leases)


def create(tx: Tx, wanted: ServerGroup, limit: int) -> ServerGroup:
    """Create a group, and return it. ``limit`` is the maximum number of the project's groups."""
    if wanted.servers_per_host_max is not None and wanted.policy != GroupPolicy.ANTI_AFFINITY:
        raise Invalid("Only anti-affinity policy supports rules.")
    if limit != UNLIMITED and count(tx, wanted.project_id) >= limit:
        raise QuotaExceeded("Quota exceeded, too many server groups.")
    server_groups.add(tx, wanted)
    return get(tx, wanted.uuid)


def get(tx: Tx, uuid: str) -> ServerGroup:
    """Return the group with this id. Raises :class:`NotFound`."""
    canonical = canonical_uuid(uuid)
    group = None if canonical is None else server_groups.by_uuid(tx, canonical)
    if group is None:
        raise unknown(uuid)
    return group


def unknown(uuid: str) -> NotFound:
    """Return the error for a group that does not exist or that belongs to another project."""
    return NotFound(f"Server group {uuid} could not be found.")


def page(
    tx: Tx, project_id: str | None, *, limit: int, offset: int = 0
) -> tuple[list[ServerGroup], Members]:
    """Return a page of the groups of a project, or of all projects, and the groups' members."""
    found = server_groups.page(tx, project_id, limit=limit, offset=offset)
    return found, server_groups.members(tx, [each.id for each in found])


def members(tx: Tx, group: ServerGroup) -> tuple[ServerId, ...]:
    """Return the servers in a group."""
    return server_groups.members(tx, [group.id]).get(group.id, ())


def delete(tx: Tx, uuid: str, *, by_lease: bool = False) -> None:
    """Delete a group. Raises :class:`NotFound`.

    Raises :class:`Conflict` for the group of a lease, unless the lease itself deletes the group.
    """
    group = get(tx, uuid)
    if group.is_of_lease and not by_lease:
        raise Conflict(f"Server group {uuid} belongs to a lease. Change the lease instead.")
    server_groups.remove(tx, group.id)


def give(tx: Tx, uuid: str, project_id: str) -> None:
    """Give a group to another project. Raises :class:`NotFound`.

    Its members leave the group, because they belong to the former project.
    """
    group = get(tx, uuid)
    leave(tx, members(tx, group))
    server_groups.set_project(tx, group.id, project_id)


def of_project(tx: Tx, uuid: str, project_id: str) -> ServerGroup:
    """Return a project's group. Raises :class:`Invalid` if the project does not own it."""
    try:
        group = get(tx, uuid)
    except NotFound as error:
        raise Invalid(error.message) from error
    if group.project_id != project_id:
        raise Invalid(unknown(uuid).message)
    return group


def rule_for(tx: Tx, uuid: str, project_id: str) -> GroupState:
    """Return the state of a group. Raises :class:`Invalid` if the project does not own it."""
    return state(tx, of_project(tx, uuid, project_id))


def of_parent(tx: Tx, told: GroupDefinition) -> ServerGroup | None:
    """Return the stored group of a zone parent, or ``None`` if no member has joined it here."""
    return server_groups.by_uuid(tx, told.uuid)


def state_of_parent(tx: Tx, told: GroupDefinition) -> GroupState:
    """Return the state of a zone parent's group in this zone and in its child zones."""
    group = of_parent(tx, told)
    if group is None:
        most = told.servers_per_host_max or 1
        found = GroupState(0, GroupRule(told.policy, {}, most), 0)
    else:
        found = state(tx, group)
    if told.has_members and not found.members and told.policy == GroupPolicy.AFFINITY:
        # The zone parent knows that the group has members elsewhere.
        found = replace(found, rule=replace(found.rule, is_elsewhere=True))
    return found


def store_of_parent(
    tx: Tx, told: GroupDefinition, project_id: str, user_id: str, now: datetime
) -> None:
    """Store a zone parent's group if it is not stored, so that servers can join the group."""
    if of_parent(tx, told) is None:
        most = told.servers_per_host_max
        server_groups.add(
            tx,
            ServerGroup(
                told.uuid, NAME_OF_PARENTS, project_id, user_id, told.policy, most, created_at=now
            ),
        )


def prune_of_parents(tx: Tx, now: datetime) -> int:
    """Delete zone parents' groups that have been empty for :data:`EMPTY_FOR`.

    Return the number of deleted groups.
    """
    return server_groups.prune_of_parents(tx, now - EMPTY_FOR)


def rule_of(tx: Tx, server_uuid: str) -> GroupState | None:
    """Return the state of a server's group, or ``None`` if the server is in no group.

    The state is for a move of the server, so it does not count the server itself.
    """
    group = server_groups.of_server(tx, server_uuid)
    return None if group is None else state(tx, group, but=server_uuid)


def state(tx: Tx, group: ServerGroup, but: str = "") -> GroupState:
    """Return the present state of a group. ``but`` is the uuid of a server that does not count."""
    counts = server_groups.member_counts(tx, group.id, but)
    placed = {host: number for host, number in counts.items() if host is not None}
    ahead = server_groups.hosts_ahead(tx, group.id, but)
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        # A moving member counts on its source and on its destination, because the move may fail.
        for host in ahead:
            placed[host] = placed.get(host, 0) + 1
    below = sum(server_groups.counts_below(tx, group.id, but).values())
    rule = GroupRule(
        group.policy,
        placed,
        group.servers_per_host_max or 1,
        is_moving=bool(ahead),
        is_elsewhere=group.policy == GroupPolicy.AFFINITY and bool(below) and not placed,
    )
    return GroupState(group.id, rule, sum(counts.values()) + below)


def joined(group_state: GroupState, hosts: Iterable[str | None]) -> GroupState:
    """Return a group's state with one more member on each of these hosts.

    Use this for members that are placed, but not written yet. ``None`` stands for a member without
    a host.
    """
    placed = dict(group_state.rule.members)
    more = 0
    for host in hosts:
        more += 1
        if host is not None:
            placed[host] = placed.get(host, 0) + 1
    rule = replace(group_state.rule, members=placed)
    return replace(group_state, rule=rule, members=group_state.members + more)


def allowed_count(group_state: GroupState, limit: int, count_min: int, count_max: int) -> int:
    """Return how many servers may join a group, but at most ``count_max``.

    ``limit`` is the maximum number of members of the group.

    Raises :class:`QuotaExceeded` if fewer than ``count_min`` may join.
    """
    if limit == UNLIMITED:
        return count_max
    allowed = min(count_max, max(0, limit - group_state.members))
    if allowed < count_min:
        raise QuotaExceeded(TOO_MANY_MEMBERS)
    return allowed


def add_members(tx: Tx, group_id: int, server_uuids: Collection[str]) -> None:
    """Add new servers to a group, in the transaction that writes the servers."""
    server_groups.add_members(tx, group_id, server_uuids)
