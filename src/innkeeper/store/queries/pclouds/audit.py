"""Queries for the audit of host flavors' pools and pclouds."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from innkeeper.domain.hosts import OF_PCLOUDS
from innkeeper.domain.pclouds import HOST_FLAVOR_KIND, PCLOUD_KIND
from innkeeper.store.by_ids import Only, narrowed
from innkeeper.store.tables.compute import aggregate_hosts, aggregates, hosts
from innkeeper.store.tables.pclouds import (
    billing_periods,
    host_flavors,
    pcloud_hosts,
    pclouds,
    pool_hosts,
)
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_aggregates,
)
from innkeeper.store.transactions import Tx


class Dedicated(NamedTuple):
    """A host with its dedication, and its membership in a pool and a pcloud."""

    name: str
    dedication: str | None
    dedicated_to: str | None
    pool: int | None
    pcloud: str | None
    is_enabled: bool | None
    is_replaced: bool | None
    maintenance: str | None


_DEDICATED = (
    sa.select(
        hosts.c.name,
        hosts.c.dedication,
        hosts.c.dedicated_to,
        pool_hosts.c.host_flavor_id,
        pclouds.c.uuid,
        pcloud_hosts.c.is_enabled,
        pcloud_hosts.c.is_replaced,
        pool_hosts.c.maintenance,
    )
    .select_from(hosts)
    .outerjoin(pool_hosts, pool_hosts.c.host_id == hosts.c.id)
    .outerjoin(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
    .outerjoin(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
    .where(hosts.c.dedication.in_(sorted(OF_PCLOUDS)) | pool_hosts.c.host_id.is_not(None))
)


def dedicated(tx: Tx, only: Only = None) -> list[Dedicated]:
    """Return the hosts that are in a pool or dedicated to pclouds.

    With ``only``, return only the hosts with these names.
    """
    return [Dedicated(*row) for row in narrowed(tx, _DEDICATED, hosts.c.name, only)]


OF_ROOM = (HOST_FLAVOR_KIND, PCLOUD_KIND)
"""The kinds of aggregates that belong to host flavors and pclouds."""


class AggregateMemberships(NamedTuple):
    """Three sets of pairs of a host's name and an aggregate's row id.

    All aggregates are aggregates of host flavors or of pclouds. ``wanted`` has the pairs that
    should exist. ``present`` has the members of the aggregates. ``mirrored`` has the members of the
    aggregates in Placement.
    """

    wanted: set[tuple[str, int]]
    present: set[tuple[str, int]]
    mirrored: set[tuple[str, int]]


_MEMBERSHIPS = (
    sa.select(hosts.c.name, aggregate_hosts.c.aggregate_id)
    .join(hosts, hosts.c.id == aggregate_hosts.c.host_id)
    .join(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
    .where(aggregates.c.kind.in_(OF_ROOM))
)
_MIRRORED = (
    sa.select(hosts.c.name, aggregates.c.id)
    .join(
        resource_provider_aggregates,
        resource_provider_aggregates.c.resource_provider_id == hosts.c.provider_id,
    )
    .join(aggregates, aggregates.c.uuid == resource_provider_aggregates.c.aggregate_uuid)
    .where(aggregates.c.kind.in_(OF_ROOM))
)
_BELONGINGS = sa.union_all(
    sa.select(hosts.c.name, host_flavors.c.aggregate_id)
    .join(pool_hosts, pool_hosts.c.host_id == hosts.c.id)
    .join(host_flavors, host_flavors.c.id == pool_hosts.c.host_flavor_id),
    sa.select(hosts.c.name, pclouds.c.aggregate_id)
    .join(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
    .join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id),
)


def memberships(tx: Tx) -> AggregateMemberships:
    """Return the memberships of hosts in aggregates of host flavors and pclouds.

    Providers without a host are left out.
    """
    return AggregateMemberships(
        _pairs(tx, _BELONGINGS), _pairs(tx, _MEMBERSHIPS), _pairs(tx, _MIRRORED)
    )


def _pairs(tx: Tx, query: sa.Select[Any] | sa.CompoundSelect[Any]) -> set[tuple[str, int]]:
    return {(name, row) for name, row in tx.execute(query)}


def orphans(tx: Tx) -> list[tuple[str, str]]:
    """Return aggregates whose host flavor or pcloud does not exist any more.

    The rows are (aggregate's name, kind).
    """
    query = (
        sa.select(aggregates.c.name, aggregates.c.kind)
        .outerjoin(host_flavors, host_flavors.c.aggregate_id == aggregates.c.id)
        .outerjoin(pclouds, pclouds.c.aggregate_id == aggregates.c.id)
        .where(aggregates.c.kind.in_(OF_ROOM))
        .where(host_flavors.c.id.is_(None) & pclouds.c.id.is_(None))
    )
    return [(name, kind) for name, kind in tx.execute(query)]


_IS_SETTLED = pclouds.c.rolled_out_to.is_(None) | (
    pcloud_hosts.c.host_id <= pclouds.c.rolled_out_to
)
"""The condition that a host has the current ratios of the host's pcloud."""


def ratios(
    tx: Tx, only: Only = None
) -> list[tuple[str, str, float, float, float, float | None, float | None]]:
    """Return the CPU and memory inventories of hosts in pclouds that set ratios.

    The rows are (host, class, ratio, max_unit, total, pcloud's CPU ratio, pcloud's memory ratio).
    Hosts that may not have the pcloud's current ratios yet are left out.
    """
    query = (
        sa.select(
            hosts.c.name,
            resource_classes.c.name,
            inventories.c.allocation_ratio,
            inventories.c.max_unit,
            inventories.c.total,
            pclouds.c.cpu_ratio,
            pclouds.c.ram_ratio,
        )
        .join(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
        .join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
        .join(inventories, inventories.c.resource_provider_id == hosts.c.provider_id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
        .where(pclouds.c.cpu_ratio.is_not(None) | pclouds.c.ram_ratio.is_not(None))
        .where(resource_classes.c.name.in_(["VCPU", "MEMORY_MB"]))
        .where(_IS_SETTLED)
    )
    return [tuple(row) for row in narrowed(tx, query, hosts.c.name, only)]


def in_force(
    tx: Tx, only: Only = None
) -> list[tuple[str, dict[str, float], str | None, float | None, float | None]]:
    """Return the hosts that have, or should have, the ratios of their pcloud.

    The rows are (host, ratios by class, pcloud, pcloud's CPU ratio, pcloud's memory ratio). The
    ratios by class are those in the host's row. Hosts that may not have the pcloud's current ratios
    yet are left out.
    """
    has_ratio = pclouds.c.cpu_ratio.is_not(None) | pclouds.c.ram_ratio.is_not(None)
    query = (
        sa.select(
            hosts.c.name,
            hosts.c.kept_ratios,
            pclouds.c.uuid,
            pclouds.c.cpu_ratio,
            pclouds.c.ram_ratio,
        )
        .outerjoin(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
        .outerjoin(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
        .where(hosts.c.kept_ratios.is_not(None) | has_ratio)
        .where(_IS_SETTLED)
    )
    return [
        # A JSON column can contain the JSON value null. The first item of a KeptRatio is in force.
        (name, {key: each[0] for key, each in (kept or {}).items()}, uuid, cpu, ram)
        for name, kept, uuid, cpu, ram in narrowed(tx, query, hosts.c.name, only)
    ]


class Paid(NamedTuple):
    """The billing of a host: its pcloud, the project that pays, its name and its units."""

    pcloud: str
    project_id: str
    name: str
    units: int


def open_periods(tx: Tx) -> tuple[dict[int, list[Paid]], dict[int, tuple[str, Paid]]]:
    """Return the open billing periods of hosts, and the billing periods that should be open.

    Both mappings have the hosts' row ids as keys. The values of the second also contain the host's
    name.
    """
    names = ("host_id", "pcloud_uuid", "project_id", "host_name", "units")
    billed = sa.select(*(billing_periods.c[name] for name in names))
    billed = billed.where(billing_periods.c.ended_at.is_(None)).order_by(billing_periods.c.id)
    members = (
        sa.select(
            pcloud_hosts.c.host_id,
            hosts.c.name,
            pclouds.c.uuid,
            pclouds.c.project_id,
            pcloud_hosts.c.name,
            pcloud_hosts.c.units,
        )
        .join(hosts, hosts.c.id == pcloud_hosts.c.host_id)
        .join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
    )
    is_paid = pcloud_hosts.c.is_replaced.is_(sa.false()) | (pcloud_hosts.c.units > 0)
    periods: dict[int, list[Paid]] = {}
    for host_id, *facts in tx.execute(billed):
        periods.setdefault(host_id, []).append(Paid(*facts))
    due = {
        host_id: (name, Paid(*facts))
        for host_id, name, *facts in tx.execute(members.where(is_paid))
    }
    return periods, due
