"""Queries that find inconsistent providers and allocations. A sound database has none."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.by_ids import Only, Rows, narrowed
from innkeeper.store.tables.placement import (
    allocations,
    changes,
    consumers,
    inventories,
    resource_classes,
    resource_providers,
)
from innkeeper.store.transactions import Tx


def over_capacity(tx: Tx) -> Rows:
    """Return overcommitted inventories, as rows of (provider's uuid, class, used, capacity).

    Operators may shrink an inventory below its usage. Inventories that were written after their
    newest allocation are assumed to have been shrunk, and are left out.
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
    """Return allocations without an inventory, as rows of (consumer, provider's uuid, class)."""
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


def without_consumer(tx: Tx, only: Only = None) -> Rows:
    """Return consumers that have allocations but no row.

    The rows are (consumer, number of allocations).
    """
    query = (
        sa.select(allocations.c.consumer_id, sa.func.count())
        .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
        .where(consumers.c.id.is_(None))
        .group_by(allocations.c.consumer_id)
    )
    return narrowed(tx, query, allocations.c.consumer_id, only)


def idle_consumers(tx: Tx, only: Only = None) -> Rows:
    """Return the consumers that have no allocations, as rows of (uuid,).

    Such a consumer is a fault: a consumer should be deleted with its last allocation.
    """
    query = (
        sa.select(consumers.c.uuid)
        .outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid)
        .where(allocations.c.id.is_(None))
    )
    return narrowed(tx, query, consumers.c.uuid, only)


def wrong_roots(tx: Tx, only: Only = None) -> Rows:
    """Return the uuids of providers whose root is not their parent's root, as rows.

    The root of a provider without a parent must be the provider itself.
    """
    child = resource_providers.alias("child")
    parent = resource_providers.alias("parent")
    # A provider without a parent is its own root.
    parents_root = sa.func.coalesce(parent.c.root_provider_id, parent.c.id, child.c.id)
    query = (
        sa.select(child.c.uuid)
        .outerjoin(parent, parent.c.id == child.c.parent_provider_id)
        .where(sa.func.coalesce(child.c.root_provider_id, child.c.id) != parents_root)
        .order_by(child.c.id)
    )
    return narrowed(tx, query, child.c.uuid, only)


def parent_cycles(tx: Tx) -> Rows:
    """Return the uuids of providers whose chain of parents does not end at a root, as rows."""
    # WITH RECURSIVE tree AS (roots UNION ALL the children of tree)
    top = sa.select(resource_providers.c.id).where(
        resource_providers.c.parent_provider_id.is_(None)
    )
    tree = top.cte("tree", recursive=True)
    below = resource_providers.alias("below")
    tree = tree.union_all(sa.select(below.c.id).join(tree, below.c.parent_provider_id == tree.c.id))
    query = (
        sa.select(resource_providers.c.uuid)
        .outerjoin(tree, tree.c.id == resource_providers.c.id)
        .where(tree.c.id.is_(None))
        .order_by(resource_providers.c.id)
    )
    return list(tx.execute(query))


def empty_allocations(tx: Tx) -> Rows:
    """Return allocations below one unit, as rows of (consumer, provider's uuid, used)."""
    query = (
        sa.select(allocations.c.consumer_id, resource_providers.c.uuid, allocations.c.used)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .where(allocations.c.used < 1)
    )
    return list(tx.execute(query))


def invalid_inventories(tx: Tx) -> Rows:
    """Return inventories with invalid values, as rows of (provider's uuid, class)."""
    query = (
        sa.select(resource_providers.c.uuid, resource_classes.c.name)
        .select_from(inventories)
        .join(resource_providers, resource_providers.c.id == inventories.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
        .where(
            (inventories.c.total < 1)
            | (inventories.c.reserved < 0)
            | (inventories.c.reserved > inventories.c.total)
            | (inventories.c.min_unit < 1)
            | (inventories.c.max_unit < 1)
            | (inventories.c.step_size < 1)
            | (inventories.c.allocation_ratio <= 0)
        )
    )
    return list(tx.execute(query))


def missing_changes(tx: Tx, only: Only = None) -> Rows:
    """Return providers whose generation differs from their last generation in the change feed.

    The rows are (provider's uuid, id, generation, last generation in the feed).
    """
    newest = sa.func.max(changes.c.generation)
    # Negative values are markers, not generations.
    query = (
        sa.select(
            resource_providers.c.uuid,
            resource_providers.c.id,
            resource_providers.c.generation,
            newest,
        )
        .join(changes, changes.c.provider_id == resource_providers.c.id)
        .where(changes.c.generation >= 0)
        .group_by(
            resource_providers.c.uuid, resource_providers.c.id, resource_providers.c.generation
        )
        .having(newest != resource_providers.c.generation)
    )
    return narrowed(tx, query, resource_providers.c.uuid, only)
