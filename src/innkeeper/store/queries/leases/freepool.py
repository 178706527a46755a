"""Database access for the hosts of the freepool, which leases may hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import AvailableHost, FreepoolHost
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.leases import freepool_hosts
from innkeeper.store.tables.placement import inventories, resource_classes, resource_providers
from innkeeper.store.transactions import Tx

_HOSTS: sa.Select[*tuple[Any, ...]] = (
    sa.select(
        *records.columns(
            hosts,
            FreepoolHost,
            but=("amounts",),
            host_id=freepool_hosts.c.host_id,
            last_seen_at=agents.c.last_seen_at,
            created_at=freepool_hosts.c.created_at,
        )
    )
    .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
)
_CANDIDATES = (
    sa.select(freepool_hosts.c.host_id, resource_providers.c.uuid, hosts.c.dedication)
    .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .where(hosts.c.is_disabled.is_(sa.false()), hosts.c.is_forced_down.is_(sa.false()))
    .where(agents.c.last_seen_at >= sa.bindparam("heard_since"))
    .order_by(freepool_hosts.c.host_id)
)
_TOTALS = (
    sa.select(inventories.c.resource_provider_id, resource_classes.c.name, inventories.c.total)
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id.in_(IDS))
)


def add(tx: Tx, host_id: int, now: datetime) -> None:
    """Add a host to the freepool."""
    tx.execute(freepool_hosts.insert(), {"host_id": host_id, "created_at": now})


def remove(tx: Tx, host_id: int) -> None:
    """Remove a host without holds from the freepool."""
    tx.execute(freepool_hosts.delete().where(freepool_hosts.c.host_id == host_id))


def by_host(tx: Tx, host_id: int) -> FreepoolHost | None:
    """Return the host with this row id, if it is in the freepool."""
    return records.first(tx, _HOSTS.where(freepool_hosts.c.host_id == host_id), FreepoolHost)


def page(tx: Tx, *, after: int, limit: int) -> list[FreepoolHost]:
    """Return the hosts in the freepool after the row ``after``, ordered by row id."""
    query = _HOSTS.where(freepool_hosts.c.host_id > after)
    query = query.order_by(freepool_hosts.c.host_id).limit(limit)
    return [FreepoolHost(*row) for row in tx.execute(query)]


def available(tx: Tx, seen_since: datetime) -> list[AvailableHost]:
    """Return the hosts of the freepool that are enabled and up, held or not."""
    return [AvailableHost(*row) for row in tx.execute(_CANDIDATES, {"heard_since": seen_since})]


def totals(tx: Tx, providers: Collection[ProviderId]) -> Mapping[ProviderId, dict[str, int]]:
    """Return the totals of these providers' inventories, by provider and class."""
    found: dict[ProviderId, dict[str, int]] = {}
    for provider_id, name, total in by_ids.rows(tx, _TOTALS, providers):
        found.setdefault(ProviderId(provider_id), {})[name] = total
    return found
