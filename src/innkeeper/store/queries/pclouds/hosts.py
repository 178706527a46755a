"""Database access for the hosts of pclouds, and for their billing periods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.pclouds import BillingPeriod, PcloudHost
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.pclouds import (
    billing_periods,
    host_flavors,
    pcloud_hosts,
    pclouds,
    pool_hosts,
)
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.transactions import Tx

_HOSTS: sa.Select[*tuple[Any, ...]] = (
    sa.select(
        pcloud_hosts.c.host_id,
        pcloud_hosts.c.pcloud_id,
        pcloud_hosts.c.name,
        host_flavors.c.flavor_id,
        pcloud_hosts.c.units,
        pcloud_hosts.c.is_enabled,
        pcloud_hosts.c.is_replaced,
        pcloud_hosts.c.allocated_at,
        hosts.c.name.label("hostname"),
        hosts.c.provider_id,
        resource_providers.c.uuid,
        hosts.c.agent_id,
        hosts.c.availability_zone,
        hosts.c.is_disabled,
        hosts.c.is_forced_down,
        agents.c.last_seen_at,
        pool_hosts.c.maintenance,
    )
    .join(pool_hosts, pool_hosts.c.host_id == pcloud_hosts.c.host_id)
    .join(host_flavors, host_flavors.c.id == pool_hosts.c.host_flavor_id)
    .join(hosts, hosts.c.id == pcloud_hosts.c.host_id)
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
)
_PERIODS = sa.select(*records.columns(billing_periods, BillingPeriod))


def of_pcloud(
    tx: Tx, pcloud: int, *, after: str | None = None, limit: int | None = None
) -> list[PcloudHost]:
    """Return the hosts of a pcloud after the name ``after``, ordered by name."""
    query = _HOSTS.where(pcloud_hosts.c.pcloud_id == pcloud).order_by(pcloud_hosts.c.name)
    if after is not None:
        query = query.where(pcloud_hosts.c.name > after)
    if limit is not None:
        query = query.limit(limit)
    return [PcloudHost(*row) for row in tx.execute(query)]


def of_pclouds(tx: Tx, pcloud_rows: Collection[int]) -> list[PcloudHost]:
    """Return the hosts of several pclouds, ordered by row id."""
    query = _HOSTS.where(pcloud_hosts.c.pcloud_id.in_(IDS)).order_by(pcloud_hosts.c.host_id)
    return [PcloudHost(*row) for row in by_ids.rows(tx, query, pcloud_rows)]


def by_name(tx: Tx, pcloud: int, name: str) -> PcloudHost | None:
    """Return the host with this name in a pcloud."""
    query = _HOSTS.where(pcloud_hosts.c.pcloud_id == pcloud, pcloud_hosts.c.name == name)
    return records.first(tx, query, PcloudHost)


def names(tx: Tx, pcloud: int) -> set[str]:
    """Return the names of a pcloud's hosts."""
    query = sa.select(pcloud_hosts.c.name).where(pcloud_hosts.c.pcloud_id == pcloud)
    return set(tx.execute(query).scalars())


def by_host(tx: Tx, host_id: int) -> PcloudHost | None:
    """Return the host with this row id, if it is in a pcloud."""
    return records.first(tx, _HOSTS.where(pcloud_hosts.c.host_id == host_id), PcloudHost)


def counts(tx: Tx, pcloud_rows: Collection[int]) -> dict[int, int]:
    """Return the number of hosts of each of these pclouds. Empty pclouds are left out."""
    query = sa.select(pcloud_hosts.c.pcloud_id, sa.func.count())
    query = query.where(pcloud_hosts.c.pcloud_id.in_(IDS)).group_by(pcloud_hosts.c.pcloud_id)
    return {row: count for row, count in by_ids.rows(tx, query, pcloud_rows)}


def behind(tx: Tx, pcloud: int, row: int, limit: int) -> list[int]:
    """Return the row ids of a pcloud's hosts, sorted. Only row ids above ``row`` are returned."""
    query = sa.select(pcloud_hosts.c.host_id).where(
        pcloud_hosts.c.pcloud_id == pcloud, pcloud_hosts.c.host_id > row
    )
    query = query.order_by(pcloud_hosts.c.host_id).limit(limit)
    return list(tx.execute(query).scalars())


def count_behind(tx: Tx, pcloud: int, row: int) -> int:
    """Return the number of a pcloud's hosts whose row ids are above ``row``."""
    query = sa.select(sa.func.count()).select_from(pcloud_hosts)
    query = query.where(pcloud_hosts.c.pcloud_id == pcloud, pcloud_hosts.c.host_id > row)
    return int(tx.execute(query).scalar_one())


def counts_behind(tx: Tx, pcloud_rows: Collection[int]) -> dict[int, int]:
    """Return how many hosts of each pcloud may still have the pcloud's previous ratios.

    Pclouds whose hosts all have the current ratios are left out.
    """
    query = sa.select(pcloud_hosts.c.pcloud_id, sa.func.count())
    query = query.join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
    query = query.where(pcloud_hosts.c.pcloud_id.in_(IDS))
    query = query.where(pcloud_hosts.c.host_id > pclouds.c.rolled_out_to)
    rows = by_ids.rows(tx, query.group_by(pcloud_hosts.c.pcloud_id), pcloud_rows)
    return {row: count for row, count in rows}


def replaced(tx: Tx) -> list[PcloudHost]:
    """Return all pcloud hosts that are being replaced by other hosts."""
    query = _HOSTS.where(pcloud_hosts.c.is_replaced.is_(sa.true()))
    return [PcloudHost(*row) for row in tx.execute(query.order_by(pcloud_hosts.c.host_id))]


def provider_ids(tx: Tx, pcloud: int) -> list[ProviderId]:
    """Return the providers of a pcloud's hosts."""
    query = (
        sa.select(hosts.c.provider_id)
        .join(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
        .where(pcloud_hosts.c.pcloud_id == pcloud)
        .order_by(hosts.c.provider_id)
    )
    return [ProviderId(each) for each in tx.execute(query).scalars()]


def units_of(tx: Tx, project_id: str) -> int:
    """Return the sum of the units of all hosts in a project's pclouds."""
    query = (
        sa.select(sa.func.coalesce(sa.func.sum(pcloud_hosts.c.units), 0))
        .join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
        .where(pclouds.c.project_id == project_id)
    )
    return int(tx.execute(query).scalar_one())


def add(tx: Tx, row: Mapping[str, Any]) -> None:
    """Add a host to a pcloud. ``row`` maps columns to values."""
    tx.execute(pcloud_hosts.insert(), dict(row))


def change(tx: Tx, host_id: int, **values: Any) -> None:
    """Update columns of a pcloud's host."""
    tx.execute(pcloud_hosts.update().where(pcloud_hosts.c.host_id == host_id).values(**values))


def remove(tx: Tx, host_id: int) -> None:
    """Remove a host from its pcloud."""
    tx.execute(pcloud_hosts.delete().where(pcloud_hosts.c.host_id == host_id))


# -- billing


def begin_billing(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Begin a billing period for each row.

    A row has the values of the new period by column name. If the host's previous period ended after
    the ``started_at`` of the row, the new period begins when the previous period ended. So no time
    is billed twice, even if requests commit out of order or the clocks of processes differ.
    """
    if not rows:
        return
    last = sa.select(billing_periods.c.host_id, sa.func.max(billing_periods.c.ended_at))
    last = last.where(billing_periods.c.host_id.in_(IDS), billing_periods.c.ended_at.is_not(None))
    last = last.group_by(billing_periods.c.host_id)
    ended = dict(map(tuple, by_ids.rows(tx, last, [row["host_id"] for row in rows])))
    begun = [max(row["started_at"], ended.get(row["host_id"], row["started_at"])) for row in rows]
    tx.execute(
        billing_periods.insert(),
        [{**row, "started_at": at} for row, at in zip(rows, begun, strict=True)],
    )


def end_billing(tx: Tx, host_ids: Collection[int], now: datetime) -> None:
    """End the open billing periods of hosts. No period ends before it began."""
    begun, ended = billing_periods.c.started_at, billing_periods.c.ended_at
    moment = sa.case((begun > now, begun), else_=sa.literal(now, ended.type))
    ending = billing_periods.update().where(billing_periods.c.host_id.in_(IDS), ended.is_(None))
    by_ids.run(tx, ending.values(ended_at=moment), host_ids)


def rename_in_billing_period(tx: Tx, host_id: int, name: str) -> None:
    """Update a host's name in its open billing period."""
    tx.execute(
        billing_periods.update()
        .where(billing_periods.c.host_id == host_id, billing_periods.c.ended_at.is_(None))
        .values(host_name=name)
    )


def periods(
    tx: Tx, start: datetime, stop: datetime, *, project_id: str | None, after: int = 0, limit: int
) -> list[BillingPeriod]:
    """Return billing periods that overlap a window, ordered by row id.

    Only periods after the row ``after`` are returned.
    """
    query = _PERIODS.where(billing_periods.c.id > after).order_by(billing_periods.c.id).limit(limit)
    query = query.where(billing_periods.c.started_at < stop)
    query = query.where(billing_periods.c.ended_at.is_(None) | (billing_periods.c.ended_at > start))
    if project_id is not None:
        query = query.where(billing_periods.c.project_id == project_id)
    return [BillingPeriod(*row) for row in tx.execute(query)]
