"""Questions whose answers should be empty, about servers, quotas, hosts and orders."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import OrderKind, OrderStatus, Status, Task
from innkeeper.store.tables.compute import hosts, quota_usages, servers, work_orders
from innkeeper.store.tables.placement import allocations, resource_providers
from innkeeper.store.transactions import Tx

Rows = list[sa.Row[*tuple[Any, ...]]]
_ALIVE = servers.c.deleted_at.is_(None)


def unbacked_servers(tx: Tx) -> Rows:
    """Rows of uuid, host, of servers that have a host and hold nothing of it."""
    query = (
        sa.select(servers.c.uuid, servers.c.host)
        .outerjoin(
            allocations,
            (allocations.c.consumer_id == servers.c.uuid)
            & (allocations.c.resource_provider_id == servers.c.provider_id),
        )
        .where(_ALIVE)
        .where(servers.c.provider_id.is_not(None))
        .where(allocations.c.id.is_(None))
    )
    return list(tx.execute(query))


def strayed_allocations(tx: Tx) -> Rows:
    """Rows of uuid, number, of allocations of servers that have no host, or of other hosts.

    Beside its host, a server may hold something of pools.
    """
    elsewhere = servers.c.provider_id.is_(None) | (
        (servers.c.provider_id != allocations.c.resource_provider_id)
        & (resource_providers.c.can_host == 1)
    )
    query = (
        sa.select(servers.c.uuid, sa.func.count())
        .join(allocations, allocations.c.consumer_id == servers.c.uuid)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .where(elsewhere | servers.c.deleted_at.is_not(None))
        .group_by(servers.c.uuid)
    )
    return list(tx.execute(query))


def wrong_usages(tx: Tx) -> Rows:
    """Rows of project, counted servers, vcpus, memory, and the sums that these should be."""
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
    rows = [row for row in tx.execute(counted) if tuple(row[1:4]) != tuple(row[4:7])]
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
    return rows + list(tx.execute(uncounted))


def idle_builds(tx: Tx) -> Rows:
    """Rows of uuid, of servers being built that no order tells an agent to build."""
    return _without_order(
        tx,
        OrderKind.BUILD,
        (servers.c.status == Status.BUILD)
        & servers.c.task_state.is_distinct_from(Task.DELETING),
    )


def idle_deletes(tx: Tx) -> Rows:
    """Rows of uuid, of servers being deleted that no order tells an agent to destroy."""
    return _without_order(tx, OrderKind.DESTROY, servers.c.task_state == Task.DELETING)


def _without_order(tx: Tx, kind: str, which: sa.ColumnElement[bool]) -> Rows:
    query = (
        sa.select(servers.c.uuid)
        .outerjoin(
            work_orders,
            (work_orders.c.server_uuid == servers.c.uuid)
            & (work_orders.c.kind == kind)
            & (work_orders.c.status == OrderStatus.WAITING),
        )
        .where(_ALIVE)
        .where(which)
        .where(work_orders.c.id.is_(None))
    )
    return list(tx.execute(query))


def misnamed_hosts(tx: Tx) -> Rows:
    """Rows of uuid, host, of servers whose host's row is on another provider, or not there."""
    query = (
        sa.select(servers.c.uuid, servers.c.host)
        .outerjoin(hosts, hosts.c.name == servers.c.host)
        .where(_ALIVE)
        .where(servers.c.host.is_not(None))
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
