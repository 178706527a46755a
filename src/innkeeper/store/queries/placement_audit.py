"""Questions whose answers should be empty, about providers and what is held of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from innkeeper.store.tables.placement import (
    allocations,
    consumers,
    inventories,
    resource_classes,
    resource_providers,
)
from innkeeper.store.transactions import Tx

Rows = list[sa.Row[*tuple[Any, ...]]]


def over_capacity(tx: Tx) -> Rows:
    """Rows of provider's uuid, class, used, capacity where more is held than there is.

    An operator may shrink an inventory below what is held; that is no oversale. Where the
    inventory was written after the newest allocation, it is taken for such.
    """
    held = (
        sa.select(
            allocations.c.resource_provider_id.label("provider_id"),
            allocations.c.resource_class_id.label("class_id"),
            sa.func.sum(allocations.c.used).label("used"),
            sa.func.max(allocations.c.created_at).label("newest"),
        )
        .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
        .subquery()
    )
    capacity = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio
    query = (
        sa.select(resource_providers.c.uuid, resource_classes.c.name, held.c.used, capacity)
        .join(
            inventories,
            (inventories.c.resource_provider_id == held.c.provider_id)
            & (inventories.c.resource_class_id == held.c.class_id),
        )
        .join(resource_providers, resource_providers.c.id == held.c.provider_id)
        .join(resource_classes, resource_classes.c.id == held.c.class_id)
        .where(held.c.used > capacity)
        .where(inventories.c.updated_at <= held.c.newest)
    )
    return list(tx.execute(query))


def without_inventory(tx: Tx) -> Rows:
    """Rows of consumer, provider's uuid, class of allocations that stand on nothing."""
    query = (
        sa.select(allocations.c.consumer_id, resource_providers.c.uuid, resource_classes.c.name)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .outerjoin(
            inventories,
            (inventories.c.resource_provider_id == allocations.c.resource_provider_id)
            & (inventories.c.resource_class_id == allocations.c.resource_class_id),
        )
        .where(inventories.c.id.is_(None))
    )
    return list(tx.execute(query))


def without_consumer(tx: Tx) -> Rows:
    """Rows of consumer, number of allocations, for consumers that do not exist."""
    query = (
        sa.select(allocations.c.consumer_id, sa.func.count())
        .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
        .where(consumers.c.id.is_(None))
        .group_by(allocations.c.consumer_id)
    )
    return list(tx.execute(query))


def idle_consumers(tx: Tx) -> Rows:
    """Rows of consumer, for consumers that hold nothing and should be gone."""
    query = (
        sa.select(consumers.c.uuid)
        .outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid)
        .where(allocations.c.id.is_(None))
    )
    return list(tx.execute(query))


def lost_roots(tx: Tx) -> Rows:
    """Rows of provider's uuid, for children whose root is not their parent's root."""
    child = resource_providers.alias("child")
    parent = resource_providers.alias("parent")
    parents_root = sa.func.coalesce(parent.c.root_provider_id, parent.c.id)
    query = (
        sa.select(child.c.uuid)
        .join(parent, parent.c.id == child.c.parent_provider_id)
        .where(sa.func.coalesce(child.c.root_provider_id, child.c.id) != parents_root)
    )
    return list(tx.execute(query))
