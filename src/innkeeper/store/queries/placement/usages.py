"""Queries for sums of allocations, by provider and by consumer type."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placement import TypeUsage
from innkeeper.store.tables.placement import allocations, consumers, inventories, resource_classes
from innkeeper.store.transactions import Tx

# SELECT name, COALESCE(SUM(used), 0) FROM inventories JOIN resource_classes
#   LEFT JOIN allocations ON <same provider and class>
#  WHERE inventories.resource_provider_id = :provider GROUP BY name
_OF_PROVIDER = (
    sa.select(resource_classes.c.name, sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
    .select_from(inventories)
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .outerjoin(
        allocations,
        sa.and_(
            allocations.c.resource_provider_id == inventories.c.resource_provider_id,
            allocations.c.resource_class_id == inventories.c.resource_class_id,
        ),
    )
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .group_by(resource_classes.c.id, resource_classes.c.name)
    .order_by(resource_classes.c.id)
)


def of_provider(tx: Tx, provider_id: ProviderId) -> dict[str, int]:
    """Return the usage of a provider by class, with 0 for inventories without allocations."""
    return {name: int(used) for name, used in tx.execute(_OF_PROVIDER, {"provider": provider_id})}


def of_project(tx: Tx, project_id: str, user_id: str | None) -> dict[str | None, TypeUsage]:
    """Return the usage of a project, or of one user in the project, by consumer type."""
    used: dict[str | None, dict[str, int]] = {}
    sums = (
        sa.select(
            consumers.c.consumer_type, resource_classes.c.name, sa.func.sum(allocations.c.used)
        )
        .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .group_by(consumers.c.consumer_type, resource_classes.c.id, resource_classes.c.name)
        .order_by(resource_classes.c.id)
    )
    for kind, name, amount in tx.execute(_of(sums, project_id, user_id)):
        used.setdefault(kind, {})[name] = int(amount)
    # A consumer exists only while it has allocations, so counting the rows is sufficient.
    counts = sa.select(consumers.c.consumer_type, sa.func.count()).group_by(
        consumers.c.consumer_type
    )
    return {
        kind: TypeUsage(int(count), used.get(kind, {}))
        for kind, count in tx.execute(_of(counts, project_id, user_id))
    }


def _of(query: sa.Select[Any], project_id: str, user_id: str | None) -> sa.Select[Any]:
    narrowed = query.where(consumers.c.project_id == project_id)
    return narrowed if user_id is None else narrowed.where(consumers.c.user_id == user_id)
