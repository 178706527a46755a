"""Manage host flavors and their pools of whole hosts.

Source: the design *Whole Host Allocation*, "Host Flavors".

Always true: only an empty, disabled host can join a pool. A host that joins is enabled, but servers
are placed on the host only while it is in a pcloud. A host of a pcloud cannot leave its pool. A
host that leaves is disabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from innkeeper.domain.errors import AlreadyExists, Conflict, InUse, NotFound
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.pclouds import HOST_FLAVOR_KIND, HostFlavor, PoolHost
from innkeeper.store.queries.pclouds import host_flavors
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, owned_aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import aggregates, members, paging
from innkeeper.systems.pclouds.context import PcloudContext

# A query that is re-exported unchanged.
by_aggregates = host_flavors.by_aggregates

LEFT_POOL = "It left the pool of host flavor {}."


def page(tx: Tx, *, after: str | None, limit: int) -> list[HostFlavor]:
    """Return a page of host flavors, in the order of their ids."""
    if after is not None:
        paging.marked(after, lambda: get(tx, after))
    return host_flavors.page(tx, after=after, limit=limit)


def get(tx: Tx, flavor_id: str) -> HostFlavor:
    """Return the host flavor with this id. Raises :class:`NotFound`."""
    found = host_flavors.by_flavor_id(tx, flavor_id)
    if found is None:
        raise NotFound(f"Host flavor {flavor_id} could not be found.")
    return found


def free_counts(
    tx: Tx, flavors: Sequence[HostFlavor], context: PcloudContext
) -> dict[int, dict[str, int]]:
    """Return the number of hosts that can be allocated now, per host flavor and zone.

    The keys are the flavor's row id and the availability zone.
    """
    return host_flavors.free_counts(tx, [each.id for each in flavors], context.seen_since)


def create(
    tx: Tx, uuid: str, flavor_id: str, description: str, units: int, now: datetime
) -> HostFlavor:
    """Create a host flavor with an empty pool. Raises :class:`AlreadyExists` for an id in use."""
    if host_flavors.by_flavor_id(tx, flavor_id) is not None:
        raise AlreadyExists(f"Host flavor {flavor_id} already exists.")
    name = aggregates.flavor_name(flavor_id)
    if owned_aggregates.is_name_taken(tx, name):
        raise AlreadyExists(f"An aggregate named {name} already exists.")
    row = owned_aggregates.create(tx, uuid, name, HOST_FLAVOR_KIND, now)
    host_flavors.add(tx, flavor_id, row, description, units, now)
    return get(tx, flavor_id)


def update(
    tx: Tx, flavor_id: str, description: str | None, units: int | None, now: datetime
) -> HostFlavor:
    """Change a host flavor. Allocated hosts keep their former number of units."""
    found = get(tx, flavor_id)
    host_flavors.change(
        tx,
        found.id,
        found.description if description is None else description,
        found.units if units is None else units,
        now,
    )
    return get(tx, flavor_id)


def delete(tx: Tx, flavor_id: str) -> None:
    """Delete a host flavor. Raises :class:`InUse` while hosts are in its pool."""
    found = get(tx, flavor_id)
    count, taken = host_flavors.counts(tx, found.id)
    if count:
        raise InUse(
            f"Host flavor {flavor_id} has {count} host(s) in its pool, {taken} of them in pclouds."
        )
    host_flavors.remove(tx, found.id)
    owned_aggregates.remove(tx, found.aggregate_id)


# -- pools -------------------------------------------------------------------------------------


def pool(
    tx: Tx, flavor: HostFlavor, *, after: str | None = None, limit: int | None = None
) -> list[PoolHost]:
    """Return a page of the free and allocated hosts in a pool. The page begins after ``after``."""
    row = 0
    if after is not None:
        row = paging.marked(after, lambda: pooled(tx, flavor, after)).host_id
    return host_flavors.pool(tx, flavor.id, after=row, limit=limit)


def counts(tx: Tx, flavor: HostFlavor) -> tuple[int, int]:
    """Return the number of hosts in a pool, and the number of these hosts that are in pclouds."""
    return host_flavors.counts(tx, flavor.id)


def pooled(tx: Tx, flavor: HostFlavor, hostname: str) -> PoolHost:
    """Return the host with this name in a pool. Raises :class:`NotFound`."""
    host = hosts.by_name_or_none(tx, hostname)
    found = None if host is None else host_flavors.pooled(tx, [host.id]).get(host.id)
    if found is None or found.flavor_id != flavor.flavor_id:
        raise NotFound(f"Host {hostname} is not in the pool of host flavor {flavor.flavor_id}.")
    return found


def add_host(tx: Tx, flavor: HostFlavor, hostname: str, now: datetime) -> PoolHost:
    """Add a host to a pool, and enable it.

    Raises :class:`NotFound` for an unknown host. Raises :class:`Conflict` if the host has another
    dedication, is enabled, is forced down, or is not empty.
    """
    host = hosts.by_name_or_none(tx, hostname)
    if host is None:
        raise NotFound(f"Compute host {hostname} could not be found.")
    pooled_host = host_flavors.pooled(tx, [host.id]).get(host.id)
    if pooled_host is not None:
        raise Conflict(f"Host {hostname} is in the pool of host flavor {pooled_host.flavor_id}.")
    cannot = f"Host {hostname} cannot be put into the pool of host flavor {flavor.flavor_id}"
    kept = dedications.why_not_free(host)
    if kept is not None:
        raise Conflict(f"{cannot}: {kept}.")
    if not host.is_disabled:
        raise Conflict(f"{cannot}: its compute service is enabled.")
    reason = dedications.why_down(host) or dedications.why_not_empty(tx, host)
    if reason is not None:
        raise Conflict(f"{cannot}: {reason}.")
    uuid = owned_aggregates.uuid_of(tx, flavor.aggregate_id)
    host_flavors.add_host(tx, flavor.id, host.id, now)
    owned_aggregates.add_host(tx, flavor.aggregate_id, uuid, host, now)
    dedications.dedicate(tx, host, Dedication.POOLED, None, now)
    hosts.change_service(tx, host, ServiceChange(is_disabled=False), now)
    return pooled(tx, flavor, hostname)


def remove_host(tx: Tx, flavor: HostFlavor, hostname: str, now: datetime) -> None:
    """Remove a free host from a pool, and disable it.

    Raises :class:`NotFound` if the host is not in the pool. Raises :class:`Conflict` if the host is
    in a pcloud, or is not empty.
    """
    pooled_host = pooled(tx, flavor, hostname)
    cannot = f"Host {hostname} cannot be taken out of the pool of host flavor"
    if pooled_host.pcloud_uuid is not None:
        raise Conflict(f"{cannot} {flavor.flavor_id}: it is in pcloud {pooled_host.pcloud_uuid}.")
    host = members.host_of(tx, pooled_host.host_id)
    reason = members.why_not_empty(tx, host)
    if reason is not None:
        raise Conflict(f"{cannot} {flavor.flavor_id}: {reason}.")
    host_flavors.remove_host(tx, host.id)
    owned_aggregates.remove_host(
        tx, flavor.aggregate_id, owned_aggregates.uuid_of(tx, flavor.aggregate_id), host, now
    )
    dedications.dedicate(tx, host, None, None, now)
    why = LEFT_POOL.format(flavor.flavor_id)
    hosts.change_service(tx, host, ServiceChange(is_disabled=True, disabled_reason=why), now)


def set_maintenance(
    tx: Tx, flavor: HostFlavor, hostname: str, reason: str | None, context: PcloudContext
) -> PoolHost:
    """Put a host into maintenance, or end its maintenance if ``reason`` is ``None``.

    A host in maintenance takes no new servers. The owner of the host's pcloud can read the reason.
    """
    pooled_host = pooled(tx, flavor, hostname)
    if pooled_host.maintenance != reason:
        host_flavors.set_maintenance(tx, pooled_host.host_id, reason)
        member = pcloud_hosts.by_host(tx, pooled_host.host_id)
        if member is not None:
            pcloud = members.pcloud_of(tx, member)
            members.dedicate(tx, pcloud, member, context.now)
            done = "maintenance" if reason is not None else "maintenance-ended"
            members.record(tx, pcloud, done, context, host_name=member.name, detail=reason)
    return pooled(tx, flavor, hostname)
