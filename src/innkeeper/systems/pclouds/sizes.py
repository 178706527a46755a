"""Apply the size policies of pclouds: a pcloud grows when it is full and shrinks when it is idle.

Always true: each transaction adds or releases one host of one pcloud. So a pcloud that cannot grow
does not delay other pclouds. A released host has been empty for the time that the policy requires.

Growing and shrinking do not undo each other, because both use the same test for full hosts. A
pcloud grows only if all hosts are full, and a new host is not full. A host is released only if
another host is not full.

A pcloud may have fewer hosts than its policy requires, because there may be no free hosts, or the
quota may be used up. If a pcloud cannot grow, the failure is recorded once, and growing is retried.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.domain.errors import Overtaken, Refusal
from innkeeper.domain.pclouds import SILENT_S, Pcloud, PcloudHost, SizePolicy
from innkeeper.store.queries.pclouds import actions as pcloud_actions
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.pclouds import hosts, members
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import free_capacity

CANNOT_GROW = "cannot-grow"


def due(tx: Tx) -> list[str]:
    """Return the ids of the pclouds with a size policy."""
    return [each.uuid for each in pclouds.with_size(tx)]


def keep(tx: Tx, uuid: str, context: PcloudContext) -> int:
    """Add or release a host of a pcloud if the size policy requires a change.

    Return the number of hosts that were added or released: 0 or 1.
    """
    pcloud = pclouds.by_uuid(tx, uuid)
    if pcloud is None or pcloud.size is None:
        return 0
    there = pcloud_hosts.of_pcloud(tx, pcloud.id)
    current = [each for each in there if not each.is_replaced]
    full = _full(tx, current, there, pcloud.size)
    patience_s = max(SILENT_S, context.service_down_time_s)
    has_room = any(
        each.host_id not in full for each in current if _is_usable(each, context, patience_s)
    )
    size = pcloud.size
    if len(current) < size.hosts_min or (not has_room and len(current) < size.hosts_max):
        return _grow(tx, pcloud, size, context)
    if size.idle_s is None or len(current) <= size.hosts_min:
        return 0
    return _shrink(tx, pcloud, size, current, full, context)


def _is_usable(member: PcloudHost, context: PcloudContext, patience_s: float) -> bool:
    """Return True if a host takes servers: it is enabled, and its agent is alive.

    ``patience_s`` is the maximum age of the agent's last heartbeat in seconds.
    """
    is_up = member.is_up(context.now, patience_s)
    return member.is_open and is_up and not member.is_disabled


def _full(tx: Tx, current: list[PcloudHost], there: list[PcloudHost], size: SizePolicy) -> set[int]:
    """Return the row ids of the full hosts in ``current``.

    ``there`` has all hosts of the pcloud, including replaced hosts.
    """
    tight = free_capacity.without_room(
        tx,
        [each.provider_id for each in current],
        {"VCPU": size.vcpus_min},
        [each.provider_id for each in there],
    )
    return {each.host_id for each in current if each.provider_id in tight}


def _grow(tx: Tx, pcloud: Pcloud, size: SizePolicy, context: PcloudContext) -> int:
    name = hosts.free_name(tx, pcloud)
    host_request = HostRequest(name, size.host_flavor, size.availability_zone, is_enabled=True)
    try:
        hosts.allocate(tx, pcloud, host_request, context)
    except Overtaken:
        # Some rows are already written, so the caller must retry the whole transaction.
        raise
    except Refusal as refusal:
        newest = pcloud_actions.page(tx, pcloud.uuid, before=None, limit=1)
        failure = (CANNOT_GROW, refusal.message)
        if [(each.action, each.detail) for each in newest] != [failure]:
            members.record(tx, pcloud, CANNOT_GROW, context, detail=refusal.message)
        return 0
    return 1


def _shrink(
    tx: Tx,
    pcloud: Pcloud,
    size: SizePolicy,
    current: list[PcloudHost],
    full: set[int],
    context: PcloudContext,
) -> int:
    assert size.idle_s is not None, "only a policy with an idle time shrinks"
    before = context.now - timedelta(seconds=size.idle_s)
    patience_s = context.service_down_time_s
    roomy = {each.host_id for each in current if _is_usable(each, context, patience_s)} - full
    for member in _idle(tx, current, before):
        if not roomy - {member.host_id}:
            # All other hosts are full. If this host were released, the pcloud would grow at once.
            continue
        machine = members.host_of(tx, member.host_id)
        if dedications.why_not_empty(tx, machine) is not None:
            continue
        closed = hosts.set_state(tx, pcloud, member, context, is_enabled=False)
        hosts.release(tx, pcloud, closed, context)
        return 1
    return 0


def _idle(tx: Tx, current: list[PcloudHost], before: datetime) -> list[PcloudHost]:
    """Return the hosts that have had no servers since ``before``, newest allocation first.

    The number of queries does not depend on the number of hosts.
    """
    old = [each for each in current if each.allocated_at <= before]
    bare = dedications.without_servers(tx, [each.hostname for each in old])
    left = dedications.left_at(tx, bare)
    idle = [each for each in old if each.hostname in bare and left[each.hostname] <= before]
    return sorted(idle, key=lambda each: each.allocated_at, reverse=True)
