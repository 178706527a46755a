"""Questions whose answers should be empty, about servers, quotas, hosts and orders."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import OrderKind, OrderStatus, Status, Task
from innkeeper.domain.moves import IN_FLIGHT, OPEN, Migration
from innkeeper.store import by_ids
from innkeeper.store.narrowing import Only, Rows, narrowed
from innkeeper.store.tables.compute import hosts, migrations, quota_usages, servers, work_orders
from innkeeper.store.tables.placement import (
    allocations,
    consumers,
    resource_classes,
    resource_providers,
)
from innkeeper.store.transactions import Tx

_ALIVE = servers.c.deleted_at.is_(None)
# A server that is on its way holds the host that it goes to.
_SETTLED = servers.c.uuid.not_in(
    sa.select(migrations.c.server_uuid).where(migrations.c.status.in_(sorted(IN_FLIGHT)))
)
PAGE = 5000
"""Servers that are looked at together: their allocations fit into memory."""


def unbacked_servers(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, host, of servers that have a host and hold nothing of it."""
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
    """Rows of uuid, number, of allocations of servers on other hosts than their own.

    Beside its host, a server may hold something of pools.
    """
    elsewhere = (servers.c.provider_id != allocations.c.resource_provider_id) & (
        resource_providers.c.can_host == 1
    )
    return list(tx.execute(_HELD_BY_SERVERS.where(elsewhere & _SETTLED & _ALIVE)))


def held_by_homeless(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, number, of allocations of servers that have no host."""
    query = _HELD_BY_SERVERS.where(servers.c.provider_id.is_(None) & _SETTLED & _ALIVE)
    return narrowed(tx, query, servers.c.uuid, only)


def held_by_deleted(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, number, of allocations of servers that are deleted."""
    query = _HELD_BY_SERVERS.where(servers.c.deleted_at.is_not(None))
    return narrowed(tx, query, servers.c.uuid, only)


def wrong_usages(tx: Tx, more: Mapping[str, tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Rows of project, counted servers, vcpus, memory, and the sums that these should be.

    ``more`` is by project what counts beside its servers' rows: vcpus and memory.
    """
    sums = (
        sa.select(
            servers.c.project_id.label("project_id"),
            sa.func.count().label("servers"),
            sa.func.sum(servers.c.vcpus).label("vcpus"),
            sa.func.sum(servers.c.memory_mb).label("memory_mb"),
        )
        .where(_ALIVE)
        .group_by(servers.c.project_id)
        .subquery()
    )

    def or_zero(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.coalesce(column, 0)

    # Both ways round, since a full join is spelt differently by every database.
    counted = sa.select(
        quota_usages.c.project_id,
        quota_usages.c.servers,
        quota_usages.c.vcpus,
        quota_usages.c.memory_mb,
        or_zero(sums.c.servers),
        or_zero(sums.c.vcpus),
        or_zero(sums.c.memory_mb),
    ).outerjoin(sums, sums.c.project_id == quota_usages.c.project_id)
    rows = [
        row for row in (_with(more, each) for each in tx.execute(counted)) if row[1:4] != row[4:7]
    ]
    uncounted = (
        sa.select(
            sums.c.project_id,
            sa.literal(0),
            sa.literal(0),
            sa.literal(0),
            sums.c.servers,
            sums.c.vcpus,
            sums.c.memory_mb,
        )
        .outerjoin(quota_usages, sums.c.project_id == quota_usages.c.project_id)
        .where(quota_usages.c.project_id.is_(None))
    )
    return rows + [_with(more, each) for each in tx.execute(uncounted)]


def _with(more: Mapping[str, tuple[int, int]], row: Sequence[Any]) -> tuple[Any, ...]:
    vcpus, memory_mb = more.get(row[0], (0, 0))
    return (*row[:5], row[5] + vcpus, row[6] + memory_mb)


def idle_builds(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, of servers being built that no order tells an agent to build."""
    return _without_order(
        tx,
        only,
        OrderKind.BUILD,
        (servers.c.status == Status.BUILD) & servers.c.task_state.is_distinct_from(Task.DELETING),
    )


def idle_deletes(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, of servers being deleted that no order tells an agent to destroy."""
    return _without_order(tx, only, OrderKind.DESTROY, servers.c.task_state == Task.DELETING)


def idle_tasks(tx: Tx, only: Only = None) -> Rows:
    """Rows of uuid, task, of servers to which nobody does what is being done to them."""
    query = (
        sa.select(servers.c.uuid, servers.c.task_state)
        .where(_ALIVE)
        .where(servers.c.task_state.is_not(None))
        .where(servers.c.task_state.not_in((Task.SPAWNING, Task.DELETING)))
        .where(_is_not_told())
    )
    return narrowed(tx, query, servers.c.uuid, only)


def loose_migrations(tx: Tx, consumer_type: str, only: Only = None) -> Rows:
    """Rows of uuid, status, of consumers of a type whose migration is over, or none."""
    query = (
        sa.select(consumers.c.uuid, migrations.c.status)
        .outerjoin(migrations, migrations.c.uuid == consumers.c.uuid)
        .where(consumers.c.consumer_type == consumer_type)
        .where(migrations.c.id.is_(None) | migrations.c.status.not_in(sorted(OPEN)))
    )
    return narrowed(tx, query, consumers.c.uuid, only)


def open_migrations(tx: Tx) -> list[Migration]:
    """All migrations that may still hold something."""
    query = sa.select(*(migrations.c[each.name] for each in fields(Migration)))
    rows = tx.execute(query.where(migrations.c.status.in_(sorted(OPEN))))
    return [Migration(*row) for row in rows]


def placed_servers(tx: Tx, only: Only = None) -> Iterator[Rows]:
    """Rows of id, uuid, flavor and image's properties; some at a time."""
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
    """What servers and others hold of each class, of all providers together.

    ``placed`` are rows of :func:`placed_servers`, all those with ids between the first and the
    last of them.
    """
    if not placed:
        return {}
    # By the ids of the rows, not by a list of thousands of uuids.
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
    query = sa.select(servers.c.uuid).where(_ALIVE).where(which).where(_is_not_told(kind))
    return narrowed(tx, query, servers.c.uuid, only)


def _is_not_told(kind: str | None = None) -> sa.ColumnElement[bool]:
    """Whether no order about a server waits, or none of a kind.

    Not a join: a database that knows nothing of how many orders wait looks for each server
    through all of them.
    """
    told = sa.select(work_orders.c.server_uuid).where(work_orders.c.status == OrderStatus.WAITING)
    if kind is not None:
        told = told.where(work_orders.c.kind == kind)
    return servers.c.uuid.not_in(told)


def misnamed_hosts(tx: Tx) -> Rows:
    """Rows of uuid, host, of servers whose host's row is on another provider, or not there.

    A server that is nowhere has neither a host nor a provider.
    """
    query = (
        sa.select(servers.c.uuid, servers.c.host)
        .outerjoin(hosts, hosts.c.name == servers.c.host)
        .where(_ALIVE)
        .where(servers.c.host.is_not(None) | servers.c.provider_id.is_not(None))
        .where(hosts.c.provider_id.is_distinct_from(servers.c.provider_id))
    )
    return list(tx.execute(query))


def hosting_pools(tx: Tx) -> Rows:
    """Rows of host, provider's uuid, of hosts whose providers cannot hold servers."""
    query = (
        sa.select(hosts.c.name, resource_providers.c.uuid)
        .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
        .where(resource_providers.c.can_host == 0)
    )
    return list(tx.execute(query))
