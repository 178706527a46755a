"""Queries for healing: the failed hosts of the freepool, and the leases that they affect."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.queries.leases.holds import IS_PRESENT
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.leases import freepool_hosts, holds, leases, reservations
from innkeeper.store.tables.placement import allocations, resource_classes, resource_providers
from innkeeper.store.transactions import Tx

_FLAGGED = (
    sa.select(leases.c.id, leases.c.uuid)
    .select_from(reservations)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(IS_PRESENT)
)
# Two queries, so that each can use an index. The comparison with true is not IS TRUE, because some
# databases use no index for IS TRUE.
_MISSING = _FLAGGED.where(reservations.c.is_missing == sa.true())
_CHANGED = _FLAGGED.where(reservations.c.is_changed == sa.true()).where(
    reservations.c.updated_at <= sa.bindparam("before")
)


def unusable(tx: Tx, seen_since: datetime) -> dict[int, bool]:
    """Return the hosts of the freepool that are disabled or down, by row id.

    The value is True if the only reason is that the agent has been silent since ``seen_since``.
    """
    is_told = hosts.c.is_disabled.is_(sa.true()) | hosts.c.is_forced_down.is_(sa.true())
    query = (
        sa.select(freepool_hosts.c.host_id, is_told)
        .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
        .join(agents, agents.c.id == hosts.c.agent_id)
        .where(is_told | (agents.c.last_seen_at < seen_since))
    )
    return {host_id: not told for host_id, told in tx.execute(query)}


def holders(
    tx: Tx, host_ids: Collection[int], now: datetime, until: datetime | None
) -> dict[str, set[int]]:
    """Return the leases that hold any of these hosts, with the hosts that each lease holds.

    The leases are ordered by start. Leases that are over are left out. With ``until``, leases that
    start at that time or later are left out too.
    """
    query = (
        sa.select(leases.c.uuid, holds.c.host_id)
        .select_from(holds)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(holds.c.host_id.in_(IDS), IS_PRESENT)
        .where(leases.c.end_at > now)
        .order_by(leases.c.start_at, leases.c.id)
    )
    if until is not None:
        query = query.where(leases.c.start_at < until)
    found: dict[str, set[int]] = {}
    for uuid, host_id in by_ids.rows(tx, query, host_ids):
        found.setdefault(uuid, set()).add(host_id)
    return found


def flagged(tx: Tx, changed_before: datetime) -> list[str]:
    """Return the leases that lack a host, or got a new host before ``changed_before``.

    Leases that are over are left out.
    """
    found = [*tx.execute(_MISSING), *tx.execute(_CHANGED, {"before": changed_before})]
    return [uuid for _, uuid in sorted({(lease, uuid) for lease, uuid in found})]


def used_slots(tx: Tx, provider_uuid: str, class_name: str) -> int:
    """Return the number of slots of one class that are allocated on a child provider."""
    query = (
        sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(resource_providers.c.uuid == provider_uuid, resource_classes.c.name == class_name)
    )
    return int(tx.execute(query).scalar_one())
