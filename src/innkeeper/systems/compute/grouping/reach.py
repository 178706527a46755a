"""Decide which child zones may get the servers of a request.

Always true: if a hint names a host, an address or dedicated hosts, only this zone may get the
servers. If a hint demands hosts near other servers, only the zones with those other servers may get
the new servers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import GroupDefinition, ServerGroup
from innkeeper.domain.placing import GroupPolicy
from innkeeper.domain.zone_tree import payer_of
from innkeeper.store.queries.compute import hosts, server_groups
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, groups, hints
from innkeeper.systems.zones import remote

OF_THIS_ZONE = (
    dedications.HINT,
    dedications.HOST_HINT,
    dedications.RESERVATION_HINT,
    hints.NEAR_ADDRESS,
)
"""The hints whose values are valid only in the zone that received the client's request."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The child zones to ask for a plan, and the server group that is sent to these zones.

    ``children`` are row ids, and ``None`` means all children. With ``stay_together``, all servers
    must be on one host, so all offers of a plan must come from one zone.
    """

    children: Collection[int] | None = None
    stay_together: bool = False
    group: GroupDefinition | None = None

    @property
    def is_near_servers(self) -> bool:
        """True if zones are left out because the new servers must be near existing servers."""
        return self.children is not None and (self.stay_together or bool(self.children))

    def includes(self, child_id: int) -> bool:
        """Return True if this child zone is asked for a plan."""
        return self.children is None or child_id in self.children


EVERYWHERE, THIS_ZONE = Reach(), Reach(())


def of(tx: Tx, request: BootRequest) -> Reach:
    """Return the child zones to ask for a plan for a request."""
    if request.forced_host is not None and hosts.by_names(tx, [request.forced_host]):
        return THIS_ZONE
    if not request.hints:
        return EVERYWHERE
    try:
        if _is_of_this_zone(request):
            return THIS_ZONE
        group = group_here(tx, request)
        told = told_below(tx, request)
    except Invalid:
        # The plan in this zone refuses the request, and says why.
        return THIS_ZONE
    near = _near(tx, request)
    if told is None or told.policy != GroupPolicy.AFFINITY:
        return Reach(near, group=told)
    placed = _with_members(tx, request, group)
    told = replace(told, has_members=placed is not None)
    if placed is not None:
        near = placed if near is None else set(near) & set(placed)
    return Reach(near, stay_together=True, group=told)


def _is_of_this_zone(request: BootRequest) -> bool:
    given = request.hints
    return any(given.get(name) is not None for name in OF_THIS_ZONE) or hints.names_hosts(given)


def group_here(tx: Tx, request: BootRequest) -> ServerGroup | None:
    """Return the server group of a request, as stored in this zone.

    Raises :class:`Invalid` for an unknown group. A group of a zone parent may not be stored yet.
    """
    named = hints.group_of(request.hints)
    if named is None:
        return None
    told = None if request.definitions is None else request.definitions.group
    if told is not None:
        return groups.of_parent(tx, told)
    return groups.of_project(tx, named, request.project_id)


def told_below(tx: Tx, request: BootRequest) -> GroupDefinition | None:
    """Return the definition of a request's server group for the child zones.

    Raises :class:`Invalid` for an unknown group.
    """
    if request.definitions is not None:
        told = request.definitions.group
        return None if told is None else replace(told, has_members=False)
    group = group_here(tx, request)
    if group is None:
        return None
    return GroupDefinition(group.uuid, group.policy, group.servers_per_host_max)


def _with_members(
    tx: Tx, request: BootRequest, group: ServerGroup | None
) -> Collection[int] | None:
    """Return the child zones with members of a group, or ``None`` if no member is placed.

    The result is empty if members are on hosts of this zone, or in zones that are unknown here.
    """
    here: Collection[str | None] = ()
    below: Collection[int] = ()
    if group is not None:
        here = [host for host in server_groups.member_counts(tx, group.id) if host is not None]
        below = groups.counts_below(tx, group.id).keys()
    told = None if request.definitions is None else request.definitions.group
    if here:
        return ()
    if below:
        return below
    return () if told is not None and told.has_members else None


def _near(tx: Tx, request: BootRequest) -> Collection[int] | None:
    """Return the child zones with the servers in the hint ``same_host``.

    Return ``None`` if the request does not have this hint.
    """
    named = hints.servers_of(request.hints, hints.SAME_HOST)
    if not named:
        return None
    found = remote.by_uuids(tx, sorted(set(named)))
    if request.definitions is not None:
        mine = payer_of(request.project_id)
        return {each.child_id for each in found if payer_of(each.project_id) == mine}
    project = request.project_id
    return {each.child_id for each in found if request.is_admin or each.project_id == project}


def admits(tx: Tx, request: BootRequest, child_ids: Collection[int]) -> bool:
    """Return True if the servers of a request may be built in these child zones now.

    After the plan, another request may have placed members of an affinity group elsewhere.
    """
    group = group_here(tx, request)
    if group is None:
        # Servers cannot join a zone parent's group that was deleted after the plan.
        return told_below(tx, request) is None
    if group.policy != GroupPolicy.AFFINITY:
        return True
    if any(host is not None for host in server_groups.member_counts(tx, group.id)):
        return False
    return {*groups.counts_below(tx, group.id), *child_ids} == set(child_ids)
