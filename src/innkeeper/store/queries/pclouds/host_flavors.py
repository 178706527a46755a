"""Database access for host flavors and the hosts in their pools."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.pclouds import HostFlavor, PoolHost
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.pclouds import host_flavors, pcloud_hosts, pclouds, pool_hosts
from innkeeper.store.transactions import Tx

_FLAVORS = sa.select(*records.columns(host_flavors, HostFlavor))
_POOLED = (
    sa.select(
        pool_hosts.c.host_id,
        hosts.c.name,
        hosts.c.provider_id,
        hosts.c.availability_zone,
        host_flavors.c.flavor_id,
        hosts.c.is_disabled,
        hosts.c.is_forced_down,
        agents.c.last_seen_at,
        pool_hosts.c.maintenance,
        pclouds.c.uuid,
        pcloud_hosts.c.name.label("given_name"),
        pcloud_hosts.c.is_replaced,
    )
    .select_from(pool_hosts)
    .join(host_flavors, host_flavors.c.id == pool_hosts.c.host_flavor_id)
    .join(hosts, hosts.c.id == pool_hosts.c.host_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
    .outerjoin(pcloud_hosts, pcloud_hosts.c.host_id == pool_hosts.c.host_id)
    .outerjoin(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
)
# A free host is in no pcloud and can be used at once: it accepts new servers and its agent is up.
_IS_FREE = sa.and_(
    pcloud_hosts.c.host_id.is_(None),
    pool_hosts.c.maintenance.is_(None),
    hosts.c.is_disabled.is_(sa.false()),
    hosts.c.is_forced_down.is_(sa.false()),
    agents.c.last_seen_at >= sa.bindparam("heard_since"),
)
# SELECT host_flavors.id, hosts.availability_zone, COUNT(*) FROM pool_hosts ...
#  WHERE (free) AND host_flavor_id IN (...) GROUP BY 1, 2
_FREE_COUNTS = (
    sa.select(pool_hosts.c.host_flavor_id, hosts.c.availability_zone, sa.func.count())
    .select_from(pool_hosts)
    .join(hosts, hosts.c.id == pool_hosts.c.host_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
    .outerjoin(pcloud_hosts, pcloud_hosts.c.host_id == pool_hosts.c.host_id)
    .where(_IS_FREE)
    .where(pool_hosts.c.host_flavor_id.in_(IDS))
    .group_by(pool_hosts.c.host_flavor_id, hosts.c.availability_zone)
)
# SELECT (SELECT min(host_id) FROM pool_hosts WHERE host_flavor_id = ...), (SELECT max ...)
# Each subquery reads one index entry. With one query for both, SQLite would scan the whole pool.
_BOUNDS = sa.select(
    *(
        sa.select(bound(pool_hosts.c.host_id))
        .where(pool_hosts.c.host_flavor_id == sa.bindparam("flavor"))
        .scalar_subquery()
        for bound in (sa.func.min, sa.func.max)
    )
)


def add(
    tx: Tx, flavor_id: str, aggregate_id: int, description: str, units: int, now: datetime
) -> None:
    """Insert a host flavor. The flavor's aggregate must exist."""
    row = {"flavor_id": flavor_id, "aggregate_id": aggregate_id, "description": description}
    moments = {"created_at": now, "updated_at": now}
    tx.execute(host_flavors.insert(), {**row, "units": units, **moments})


def by_flavor_id(tx: Tx, flavor_id: str) -> HostFlavor | None:
    """Return the host flavor with this public id."""
    return records.first(tx, _FLAVORS.where(host_flavors.c.flavor_id == flavor_id), HostFlavor)


def by_aggregates(tx: Tx, aggregate_ids: Collection[int]) -> dict[int, HostFlavor]:
    """Return the host flavors of these aggregates, by the aggregates' row ids."""
    query = _FLAVORS.where(host_flavors.c.aggregate_id.in_(IDS))
    found = [HostFlavor(*row) for row in by_ids.rows(tx, query, aggregate_ids)]
    return {each.aggregate_id: each for each in found}


def page(tx: Tx, *, after: str | None, limit: int) -> list[HostFlavor]:
    """Return host flavors after the id ``after``, ordered by public id."""
    query = _FLAVORS.order_by(host_flavors.c.flavor_id).limit(limit)
    if after is not None:
        query = query.where(host_flavors.c.flavor_id > after)
    return [HostFlavor(*row) for row in tx.execute(query)]


def change(tx: Tx, row: int, description: str, units: int, now: datetime) -> None:
    """Update the description and units of a host flavor."""
    tx.execute(
        host_flavors.update()
        .where(host_flavors.c.id == row)
        .values(description=description, units=units, updated_at=now)
    )


def remove(tx: Tx, row: int) -> None:
    """Delete a host flavor, which must have no hosts."""
    tx.execute(host_flavors.delete().where(host_flavors.c.id == row))


def free_counts(tx: Tx, rows: Collection[int], seen_since: datetime) -> dict[int, dict[str, int]]:
    """Return the number of free hosts of these flavors, by flavor and availability zone."""
    found: dict[int, dict[str, int]] = {}
    counts = tx.execute(_FREE_COUNTS, {"ids": list(rows), "heard_since": seen_since})
    for flavor, zone, count in counts:
        found.setdefault(flavor, {})[zone] = count
    return found


def bounds(tx: Tx, row: int) -> tuple[int, int] | None:
    """Return the lowest and highest row id of a pool's hosts, or ``None`` if the pool is empty."""
    least, most = tx.execute(_BOUNDS, {"flavor": row}).one()
    return None if least is None else (least, most)


def free_hosts(
    tx: Tx,
    row: int,
    zone: str | None,
    seen_since: datetime,
    *,
    first: int,
    before: int | None = None,
    limit: int,
) -> list[PoolHost]:
    """Return the free hosts of a pool, sorted by row id.

    Their row ids are at least ``first`` and below ``before``.
    """
    query = (
        _POOLED.where(_IS_FREE)
        .where(pool_hosts.c.host_flavor_id == row)
        .where(pool_hosts.c.host_id >= first)
        .order_by(pool_hosts.c.host_id)
        .limit(limit)
    )
    if before is not None:
        query = query.where(pool_hosts.c.host_id < before)
    if zone is not None:
        query = query.where(hosts.c.availability_zone == zone)
    return [PoolHost(*each) for each in tx.execute(query, {"heard_since": seen_since})]


def pool(tx: Tx, row: int, *, after: int = 0, limit: int | None = None) -> list[PoolHost]:
    """Return the hosts of a pool after the row ``after``, ordered by row id."""
    query = _POOLED.where(pool_hosts.c.host_flavor_id == row)
    query = query.where(pool_hosts.c.host_id > after).order_by(pool_hosts.c.host_id)
    if limit is not None:
        query = query.limit(limit)
    return [PoolHost(*each) for each in tx.execute(query)]


def counts(tx: Tx, row: int) -> tuple[int, int]:
    """Return the number of hosts in a pool, and how many of them are in pclouds."""
    query = (
        sa.select(sa.func.count(), sa.func.count(pcloud_hosts.c.host_id))
        .select_from(pool_hosts)
        .outerjoin(pcloud_hosts, pcloud_hosts.c.host_id == pool_hosts.c.host_id)
        .where(pool_hosts.c.host_flavor_id == row)
    )
    all_, taken = tx.execute(query).one()
    return all_, taken


def pooled(tx: Tx, host_ids: Collection[int]) -> dict[int, PoolHost]:
    """Return the hosts with these row ids that are in a pool, by row id."""
    rows = by_ids.rows(tx, _POOLED.where(pool_hosts.c.host_id.in_(IDS)), host_ids)
    return {each.host_id: each for each in (PoolHost(*row) for row in rows)}


def add_host(tx: Tx, row: int, host_id: int, now: datetime) -> None:
    """Add a host to a pool."""
    tx.execute(pool_hosts.insert(), {"host_flavor_id": row, "host_id": host_id, "created_at": now})


def remove_host(tx: Tx, host_id: int) -> None:
    """Remove a host from its pool."""
    tx.execute(pool_hosts.delete().where(pool_hosts.c.host_id == host_id))


def set_maintenance(tx: Tx, host_id: int, reason: str | None) -> None:
    """Set the reason why a host accepts no new servers, or ``None`` if it accepts them."""
    tx.execute(
        pool_hosts.update().where(pool_hosts.c.host_id == host_id).values(maintenance=reason)
    )
