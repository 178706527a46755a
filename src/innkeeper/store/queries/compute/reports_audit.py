"""Queries for the audit of agents' reports and orders."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.domain.compute import Status
from innkeeper.domain.moves import IN_FLIGHT, OPEN
from innkeeper.domain.orders import OrderStatus
from innkeeper.store.by_ids import Only, Rows, narrowed
from innkeeper.store.tables.compute import hosts, migrations, servers, unknown_servers, work_orders
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_traits,
    traits,
)
from innkeeper.store.tables.volumes import volumes
from innkeeper.store.transactions import Tx

_WAITS = work_orders.c.status == OrderStatus.WAITING


def unknown_on_hosts(tx: Tx) -> Rows:
    """Return reported servers that do not exist, as rows of (host, server's uuid, report time)."""
    query = (
        sa.select(
            unknown_servers.c.host, unknown_servers.c.server_uuid, unknown_servers.c.reported_at
        )
        .outerjoin(servers, servers.c.uuid == unknown_servers.c.server_uuid)
        .where(servers.c.id.is_(None))
        .order_by(unknown_servers.c.host, unknown_servers.c.server_uuid)
    )
    return list(tx.execute(query))


def faulty_servers(tx: Tx) -> Rows:
    """Return servers in ERROR that have a host, as rows of (uuid, host, fault)."""
    query = (
        sa.select(servers.c.uuid, servers.c.host, servers.c.fault)
        .where(servers.c.status == Status.ERROR)
        .where(servers.c.deleted_at.is_(None))
        .where(servers.c.host.is_not(None))
    )
    return list(tx.execute(query))


def reported_names(tx: Tx) -> Rows:
    """Return rows of (host, provider's row id, classes and traits in the last report)."""
    return list(tx.execute(sa.select(hosts.c.name, hosts.c.provider_id, hosts.c.reported)))


def kept_classes(tx: Tx) -> set[tuple[int, str]]:
    """Return pairs of (host's provider, resource class) for all inventories of hosts."""
    query = (
        sa.select(inventories.c.resource_provider_id, resource_classes.c.name)
        .join(hosts, hosts.c.provider_id == inventories.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    )
    return {(row[0], row[1]) for row in tx.execute(query)}


def kept_traits(tx: Tx) -> set[tuple[int, str]]:
    """Return pairs of (host's provider, trait) for all traits of hosts."""
    query = (
        sa.select(resource_provider_traits.c.resource_provider_id, traits.c.name)
        .join(hosts, hosts.c.provider_id == resource_provider_traits.c.resource_provider_id)
        .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    )
    return {(row[0], row[1]) for row in tx.execute(query)}


def misdirected_orders(tx: Tx, only: Only = None) -> Rows:
    """Return hosts whose waiting orders are assigned to an agent other than the host's agent.

    The rows are (host, host's agent, number of wrong orders).
    """
    query = (
        sa.select(hosts.c.name, hosts.c.agent_id, sa.func.count())
        .join(work_orders, work_orders.c.host == hosts.c.name)
        .where(_WAITS)
        .where(work_orders.c.agent_id != hosts.c.agent_id)
        .group_by(hosts.c.name, hosts.c.agent_id)
    )
    return narrowed(tx, query, hosts.c.name, only)


def orphaned_orders(tx: Tx, only: Only = None) -> Rows:
    """Return waiting orders for servers or volumes that do not exist.

    The rows are (id, kind, server or volume).
    """
    query = (
        sa.select(work_orders.c.id, work_orders.c.kind, work_orders.c.server_uuid)
        .outerjoin(servers, servers.c.uuid == work_orders.c.server_uuid)
        .outerjoin(volumes, volumes.c.uuid == work_orders.c.server_uuid)
        .where(_WAITS)
        .where(servers.c.id.is_(None))
        .where(volumes.c.id.is_(None))
    )
    return narrowed(tx, query, work_orders.c.id, only)


def orphaned_migrations(tx: Tx) -> Rows:
    """Return open migrations of servers that do not exist, as rows of (uuid, server)."""
    query = (
        sa.select(migrations.c.uuid, migrations.c.server_uuid)
        .outerjoin(servers, servers.c.uuid == migrations.c.server_uuid)
        .where(migrations.c.status.in_(sorted(OPEN)))
        .where(servers.c.id.is_(None))
    )
    return list(tx.execute(query))


def double_moves(tx: Tx) -> Rows:
    """Return servers with several migrations in progress, as rows of (server, migrations)."""
    query = (
        sa.select(migrations.c.server_uuid, sa.func.count())
        .where(migrations.c.status.in_(sorted(IN_FLIGHT)))
        .group_by(migrations.c.server_uuid)
        .having(sa.func.count() > 1)
    )
    return list(tx.execute(query))


def running_without_host(tx: Tx) -> Rows:
    """Return servers that should have a host but have none, as rows of (uuid, status)."""
    rest = (Status.BUILD, Status.ERROR, Status.SHELVED_OFFLOADED)
    query = (
        sa.select(servers.c.uuid, servers.c.status)
        .where(servers.c.deleted_at.is_(None))
        .where(servers.c.provider_id.is_(None))
        .where(servers.c.status.not_in(rest))
    )
    return list(tx.execute(query))
