"""Queries for lists of the pools that volumes can be on: shared pools, and the disks of hosts."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placement import SHARES
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS, Rows
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.placement import (
    allocations,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from innkeeper.store.transactions import Tx

_LINKS = resource_provider_aggregates.c
_ROOT = sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
_CAPACITY = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio


def _with_inventory(class_name: str) -> sa.Select[Any]:
    return (
        sa.select(resource_providers.c.id, resource_providers.c.name, _CAPACITY)
        .join(inventories, inventories.c.resource_provider_id == resource_providers.c.id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
        .where(resource_classes.c.name == class_name)
        .order_by(resource_providers.c.id)
    )


def shared(tx: Tx, class_name: str, limit: int) -> Rows:
    """Return the shared pools with inventory of a class, as rows of (id, name, capacity)."""
    sharing = (
        sa.select(resource_provider_traits.c.resource_provider_id)
        .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
        .where(traits.c.name == SHARES)
    )
    query = (
        _with_inventory(class_name)
        .where(resource_providers.c.id.in_(sharing))
        .where(resource_providers.c.can_host == 0)
    )
    return list(tx.execute(query.limit(limit)))


def on_hosts(tx: Tx, class_name: str, before: datetime, limit: int) -> Rows:
    """Return the hosts with inventory of a class.

    The rows are (id, name, capacity, zone, whether the host is enabled and up). A host without a
    heartbeat since ``before`` is down.
    """
    query = (
        _with_inventory(class_name)
        .join(hosts, hosts.c.provider_id == resource_providers.c.id)
        .join(agents, agents.c.id == hosts.c.agent_id)
        .where(resource_providers.c.can_host == 1)
        .with_only_columns(
            resource_providers.c.id,
            hosts.c.name,
            _CAPACITY,
            hosts.c.availability_zone,
            sa.case((_up(before), 1), else_=0),
        )
    )
    return list(tx.execute(query.limit(limit)))


def _up(before: datetime) -> sa.ColumnElement[bool]:
    is_open = hosts.c.is_disabled.is_(sa.false()) & hosts.c.is_forced_down.is_(sa.false())
    return is_open & (agents.c.last_seen_at >= before)


def links(tx: Tx, pools: Collection[ProviderId]) -> Rows:
    """Return the aggregates of these pools, as rows of (pool, aggregate)."""
    query = sa.select(_LINKS.resource_provider_id, _LINKS.aggregate_uuid)
    return by_ids.rows(tx, query.where(_LINKS.resource_provider_id.in_(IDS)), sorted(pools))


def members(tx: Tx, aggregates: Collection[str]) -> Rows:
    """Return the provider trees that have a provider in one of these aggregates.

    The rows are (aggregate, root of the tree).
    """
    query = sa.select(_LINKS.aggregate_uuid, _ROOT).join(
        resource_providers, resource_providers.c.id == _LINKS.resource_provider_id
    )
    return by_ids.rows(tx, query.where(_LINKS.aggregate_uuid.in_(IDS)), sorted(aggregates))


def hosts_up(tx: Tx, before: datetime) -> Rows:
    """Return the hosts that are enabled and up, as rows of (root, zone, name)."""
    query = (
        sa.select(_ROOT, hosts.c.availability_zone, hosts.c.name)
        .select_from(hosts)
        .join(agents, agents.c.id == hosts.c.agent_id)
        .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
        .where(resource_providers.c.can_host == 1)
        .where(_up(before))
    )
    return list(tx.execute(query))


def used(tx: Tx, pools: Collection[ProviderId], class_name: str) -> dict[ProviderId, int]:
    """Return the amounts of a class that are allocated on these providers."""
    query = (
        sa.select(allocations.c.resource_provider_id, sa.func.sum(allocations.c.used))
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(resource_classes.c.name == class_name)
        .where(allocations.c.resource_provider_id.in_(IDS))
        .group_by(allocations.c.resource_provider_id)
    )
    return {ProviderId(pool): int(amount) for pool, amount in by_ids.rows(tx, query, sorted(pools))}


def trait_names(tx: Tx, pools: Collection[ProviderId]) -> Rows:
    """Return the traits of these providers, as rows of (provider, trait)."""
    theirs = resource_provider_traits.c
    query = sa.select(theirs.resource_provider_id, traits.c.name).join(
        traits, traits.c.id == theirs.trait_id
    )
    return by_ids.rows(tx, query.where(theirs.resource_provider_id.in_(IDS)), sorted(pools))
