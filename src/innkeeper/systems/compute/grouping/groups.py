"""Server groups: members, and the rules for their placement.

Always true: a group and its members belong to one project. A membership is written in the
transaction that writes the server. Deleting a group does not affect its servers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid, NotFound, QuotaExceeded
from innkeeper.domain.grouping import GroupState, Members, ServerGroup
from innkeeper.domain.ids import ServerId, canonical_uuid
from innkeeper.domain.placing import GroupPolicy, GroupRule
from innkeeper.store.queries.compute import server_groups
from innkeeper.store.transactions import Tx

# Queries that are re-exported unchanged.
count = server_groups.count
uuid_of = server_groups.uuid_of_server


def create(tx: Tx, wanted: ServerGroup, limit: int) -> ServerGroup:
    """Create a group, and return it. ``limit`` is the project's quota of groups."""
    if wanted.servers_per_host_max is not None and wanted.policy != GroupPolicy.ANTI_AFFINITY:
        raise Invalid("Only anti-affinity policy supports rules.")
    if limit != UNLIMITED and server_groups.count(tx, wanted.project_id) >= limit:
        raise QuotaExceeded("Quota exceeded, too many server groups.")
    server_groups.add(tx, wanted)
    return get(tx, wanted.uuid)


def get(tx: Tx, uuid: str) -> ServerGroup:
    """Return the group with this id, or raise :class:`NotFound`."""
    canonical = canonical_uuid(uuid)
    group = None if canonical is None else server_groups.by_uuid(tx, canonical)
    if group is None:
        raise unknown(uuid)
    return group


def unknown(uuid: str) -> NotFound:
    """Return the refusal for a group that does not exist or belongs to another project."""
    return NotFound(f"Server group {uuid} could not be found.")


def page(
    tx: Tx, project_id: str | None, *, limit: int, offset: int = 0
) -> tuple[list[ServerGroup], Members]:
    """Return groups of a project, or of all projects, with their members."""
    found = server_groups.page(tx, project_id, limit=limit, offset=offset)
    return found, server_groups.members(tx, [each.id for each in found])


def members(tx: Tx, group: ServerGroup) -> tuple[ServerId, ...]:
    """Return the servers in a group."""
    return server_groups.members(tx, [group.id]).get(group.id, ())


def delete(tx: Tx, uuid: str) -> None:
    """Delete a group, or raise :class:`NotFound`."""
    server_groups.remove(tx, get(tx, uuid).id)


def rule_for(tx: Tx, uuid: str, project_id: str) -> GroupState:
    """Return the state of a group, or raise :class:`Invalid` if the project does not own it."""
    try:
        group = get(tx, uuid)
    except NotFound as error:
        raise Invalid(error.message) from error
    if group.project_id != project_id:
        raise Invalid(unknown(uuid).message)
    return _group_state(tx, group)


def rule_of(tx: Tx, server_uuid: str) -> GroupState | None:
    """Return the state of a server's group without the server itself, or ``None``.

    It is used for moves, in which the server's current host does not count.
    """
    group = server_groups.of_server(tx, server_uuid)
    return None if group is None else _group_state(tx, group, but=server_uuid)


def _group_state(tx: Tx, group: ServerGroup, but: str = "") -> GroupState:
    counts = server_groups.member_counts(tx, group.id, but)
    placed = {host: number for host, number in counts.items() if host is not None}
    ahead = server_groups.hosts_ahead(tx, group.id, but)
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        # A moving member counts on both of its hosts, because it may end up on either.
        for host in ahead:
            placed[host] = placed.get(host, 0) + 1
    rule = GroupRule(group.policy, placed, group.servers_per_host_max or 1, bool(ahead))
    return GroupState(group.id, rule, sum(counts.values()))


def joined(group_state: GroupState, hosts: Iterable[str | None]) -> GroupState:
    """Return a group's state with one more member for each of these hosts.

    ``None`` stands for a member without a host. This serves requests that share a transaction,
    because the members from earlier requests are not written yet.
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
    """Return how many servers, up to ``count_max``, may join a group of at most ``limit`` members.

    Raises :class:`QuotaExceeded` if fewer than ``count_min`` may join.
    """
    if limit == UNLIMITED:
        return count_max
    allowed = min(count_max, max(0, limit - group_state.members))
    if allowed < count_min:
        raise QuotaExceeded("Quota exceeded, too many servers in group")
    return allowed


def add_members(tx: Tx, group_id: int, server_uuids: Collection[str]) -> None:
    """Add new servers to a group, in the transaction that writes the servers."""
    server_groups.add_members(tx, group_id, server_uuids)
