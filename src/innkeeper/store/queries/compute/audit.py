"""Queries that find inconsistent servers, quotas, hosts and orders.

On a sound database, these queries find nothing. The exceptions are :func:`open_migrations`,
:func:`placed_servers` and :func:`holdings`: they return all rows, which the audit then checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.moves import IN_FLIGHT, OPEN, Migration
from innkeeper.domain.orders import OrderKind, OrderStatus
from innkeeper.domain.zone_tree import payer_of
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import Only, Rows, narrowed
from innkeeper.store.tables.compute import hosts, migrations, quota_usages, servers, work_orders
from innkeeper.store.tables.placement import (
    allocations,
    consumers,
    resource_classes,
    resource_providers,
)
from innkeeper.store.tables.zones import zone_servers
from innkeeper.store.transactions import Tx

_ALIVE = servers.c.deleted_at.is_(None)
# A server that is moving may have allocations on two hosts.
_SETTLED = servers.c.uuid.not_in(
    sa.select(migrations.c.server_uuid).where(migrations.c.status.in_(sorted(IN_FLIGHT)))
)
PAGE = 5000
"""The number of servers in one batch. The allocations of a batch must fit into memory."""


def unbacked_servers(tx: Tx, only: Only = None) -> Rows:
    """Return servers without allocations on their host, as rows of (uuid, host)."""
    query = (
        sa.select(servers.c.uuid, servers.c.host)
        .outerjoin(
            allocations,
            (allocations.c.consumer_id == servers.c.uuid)
            & (allocations.c.resource_provider_id == servers.c.provider_id),
        )
        .where(_ALIVE)
        .where(_SETTLED)
        .where(servers.c.provider_id.is_not(None))
        .where(allocations.c.id.is_(None))
    )
    return narrowed(tx, query, servers.c.uuid, only)


_HELD_BY_SERVERS = (
    sa.select(servers.c.uuid, sa.func.count())
    .join(allocations, allocations.c.consumer_id == servers.c.uuid)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .group_by(servers.c.uuid)
)


def held_elsewhere(tx: Tx) -> Rows:
    """Return servers that have allocations on hosts other than their own.

    Allocations on pools are left out. The rows are (uuid, number of allocations).
    """
    elsewhere = (servers.c.provider_id != allocations.c.resource_provider_id) & (
        resource_providers.c.can_host == 1
    )
    return list(tx.execute(_HELD_BY_SERVERS.where(elsewhere & _SETTLED & _ALIVE)))


def held_without_host(tx: Tx, only: Only = None) -> Rows:
    """Return servers that have allocations but no host.

    The rows are (uuid, number of allocations).
    """
    query = _HELD_BY_SERVERS.where(servers.c.provider_id.is_(None) & _SETTLED & _ALIVE)
    return narrowed(tx, query, servers.c.uuid, only)


def held_by_deleted(tx: Tx, only: Only = None) -> Rows:
    """Return deleted servers that have allocations, as rows of (uuid, number of allocations)."""
    query = _HELD_BY_SERVERS.where(servers.c.deleted_at.is_not(None))
    return narrowed(tx, query, servers.c.uuid, only)


def wrong_usages(tx: Tx, more: Mapping[str, tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Return the wrong quota usages of projects and zone parents.

    A usage is wrong if it differs from the sums over all servers. Each row has the project, the
    three recorded sums (servers, vcpus, memory), and the three correct sums. ``more`` contains, by
    project, vcpus and memory that count in addition to those of the servers.
    """
    recorded = {row[0]: tuple(row[1:]) for row in tx.execute(_RECORDED)}
    counted: dict[str, list[int]] = {}
    rows = [*tx.execute(_sums(servers, _ALIVE)), *tx.execute(_sums(zone_servers, sa.true()))]
    rows += [(project, 0, *amounts) for project, amounts in more.items()]
    for project, *amounts in rows:
        for key in dict.fromkeys((project, payer_of(project))):
            total = counted.setdefault(key, [0, 0, 0])
            counted[key] = [had + int(each) for had, each in zip(total, amounts, strict=True)]
    nothing = (0, 0, 0)
    pairs = [
        (key, recorded.get(key, nothing), tuple(counted.get(key, nothing)))
        for key in sorted(recorded.keys() | counted.keys())
    ]
    return [(key, *had, *real) for key, had, real in pairs if had != real]


_RECORDED = sa.select(
    quota_usages.c.project_id, *(quota_usages.c[name] for name in ("servers", "vcpus", "memory_mb"))
)


def _sums(table: sa.Table, which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(
            table.c.project_id,
            sa.func.count(),
            sa.func.sum(table.c.vcpus),
            sa.func.sum(table.c.memory_mb),
        )
        .where(which)
        .group_by(table.c.project_id)
    )


def idle_builds(tx: Tx, only: Only = None) -> Rows:
    """Return the uuids of servers in BUILD without a build order, as rows."""
    return _without_order(
        tx,
        only,
        OrderKind.BUILD,
        (servers.c.status == Status.BUILD) & servers.c.task_state.is_distinct_from(Task.DELETING),
    )


def idle_deletes(tx: Tx, only: Only = None) -> Rows:
    """Return the uuids of servers that are being deleted without a destroy order, as rows."""
    return _without_order(tx, only, OrderKind.DESTROY, servers.c.task_state == Task.DELETING)


def idle_tasks(tx: Tx, only: Only = None) -> Rows:
    """Return servers with a task state but without an order, as rows of (uuid, task state)."""
    query = (
        sa.select(servers.c.uuid, servers.c.task_state)
        .where(_ALIVE)
        .where(servers.c.task_state.is_not(None))
        .where(servers.c.task_state.not_in((Task.SPAWNING, Task.DELETING)))
        .where(_has_no_order())
    )
    return narrowed(tx, query, servers.c.uuid, only)


def consumers_without_migration(tx: Tx, consumer_type: str, only: Only = None) -> Rows:
    """Return consumers of this type that have no open migration.

    The rows are (uuid, status of the ended migration or ``None``).
    """
    query = (
        sa.select(consumers.c.uuid, migrations.c.status)
        .outerjoin(migrations, migrations.c.uuid == consumers.c.uuid)
        .where(consumers.c.consumer_type == consumer_type)
        .where(migrations.c.id.is_(None) | migrations.c.status.not_in(sorted(OPEN)))
    )
    return narrowed(tx, query, consumers.c.uuid, only)


def open_migrations(tx: Tx) -> list[Migration]:
    """Return all migrations that may still have allocations."""
    query = sa.select(*records.columns(migrations, Migration))
    rows = tx.execute(query.where(migrations.c.status.in_(sorted(OPEN))))
    return [Migration(*row) for row in rows]


def placed_servers(tx: Tx, only: Only = None) -> Iterator[Rows]:
    """Yield the servers that have a provider, in batches.

    The rows are (id, uuid, flavor, image properties).
    """
    query = sa.select(servers.c.id, servers.c.uuid, servers.c.flavor, servers.c.image_properties)
    query = query.where(_ALIVE).where(servers.c.provider_id.is_not(None))
    if only is not None:
        for row in narrowed(tx, query, servers.c.uuid, only):
            yield [row]
        return
    after = 0
    while rows := list(
        tx.execute(query.where(servers.c.id > after).order_by(servers.c.id).limit(PAGE))
    ):
        yield rows
        after = rows[-1][0]


_HOLDINGS = sa.select(
    allocations.c.consumer_id, allocations.c.resource_class_id, allocations.c.used
)


def holdings(tx: Tx, placed: Rows, others: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the allocations of servers and of other consumers, summed by consumer and class.

    ``placed`` must be a batch of :func:`placed_servers`, and ``others`` are the uuids of the other
    consumers.
    """
    if not placed:
        return {}
    # Selects a range of row ids instead of a list of thousands of uuids.
    ids = [row[0] for row in placed]
    of_servers = _HOLDINGS.join(servers, servers.c.uuid == allocations.c.consumer_id)
    rows: list[Any] = list(tx.execute(of_servers.where(servers.c.id.between(min(ids), max(ids)))))
    rows += by_ids.rows(tx, _HOLDINGS.where(allocations.c.consumer_id.in_(by_ids.IDS)), others)
    names = dict(tx.execute(sa.select(resource_classes.c.id, resource_classes.c.name)).all())
    found: dict[str, dict[str, int]] = {}
    for uuid, class_id, used in rows:
        held, name = found.setdefault(uuid, {}), names[class_id]
        held[name] = held.get(name, 0) + used
    return found


def _without_order(tx: Tx, only: Only, kind: str, which: sa.ColumnElement[bool]) -> Rows:
    query = sa.select(servers.c.uuid).where(_ALIVE).where(which).where(_has_no_order(kind))
    return narrowed(tx, query, servers.c.uuid, only)


def _has_no_order(kind: str | None = None) -> sa.ColumnElement[bool]:
    """Return the condition that a server has no pending order.

    With ``kind``, only orders of this kind count. Waiting and held orders are pending. The
    condition is a subquery, because with a join, a database without statistics would scan all
    pending orders for each server.
    """
    ordered = sa.select(work_orders.c.server_uuid).where(
        work_orders.c.status.in_((OrderStatus.WAITING, OrderStatus.HELD))
    )
    if kind is not None:
        ordered = ordered.where(work_orders.c.kind == kind)
    return servers.c.uuid.not_in(ordered)


def misnamed_hosts(tx: Tx) -> Rows:
    """Return servers whose host and provider do not belong together, as rows of (uuid, host)."""
    query = (
        sa.select(servers.c.uuid, servers.c.host)
        .outerjoin(hosts, hosts.c.name == servers.c.host)
        .where(_ALIVE)
        .where(servers.c.host.is_not(None) | servers.c.provider_id.is_not(None))
        .where(hosts.c.provider_id.is_distinct_from(servers.c.provider_id))
    )
    return list(tx.execute(query))


def hosting_pools(tx: Tx) -> Rows:
    """Return hosts on providers that cannot hold servers, as rows of (host, provider's uuid)."""
    query = (
        sa.select(hosts.c.name, resource_providers.c.uuid)
        .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
        .where(resource_providers.c.can_host == 0)
    )
    return list(tx.execute(query))
