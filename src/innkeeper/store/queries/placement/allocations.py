"""Allocations and consumers, read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId, ProviderUuid
from innkeeper.domain.placement import Allocation, Consumer
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import servers
from innkeeper.store.tables.placement import (
    allocations,
    consumers,
    resource_classes,
    resource_providers,
)
from innkeeper.store.transactions import Tx

_ROWS = (
    sa.select(
        allocations.c.consumer_id,
        allocations.c.resource_provider_id,
        resource_providers.c.uuid,
        allocations.c.resource_class_id,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
        resource_providers.c.generation,
    )
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .order_by(allocations.c.id)
)
_OF_CONSUMERS = _ROWS.where(allocations.c.consumer_id.in_(IDS))
_OF_PROVIDER = _ROWS.where(allocations.c.resource_provider_id == sa.bindparam("provider"))


def of_consumers(tx: Tx, uuids: Iterable[ConsumerUuid]) -> list[Allocation]:
    """All that these consumers hold; what belongs to one of them stands in its order."""
    return [_allocation(row) for row in by_ids.rows(tx, _OF_CONSUMERS, uuids)]


def of_provider(tx: Tx, provider_id: ProviderId) -> list[Allocation]:
    """All that is held of one provider."""
    return [_allocation(row) for row in tx.execute(_OF_PROVIDER, {"provider": provider_id})]


def _allocation(row: Sequence[Any]) -> Allocation:
    consumer, provider_id, uuid, class_id, class_name, used, created_at, generation = row
    return Allocation(
        ConsumerUuid(consumer),
        ProviderId(provider_id),
        ProviderUuid(uuid),
        ClassId(class_id),
        class_name,
        used,
        created_at,
        Generation(generation),
    )


_CONSUMERS = sa.select(
    consumers.c.uuid,
    consumers.c.project_id,
    consumers.c.user_id,
    consumers.c.generation,
    consumers.c.consumer_type,
)
_CONSUMERS_BY_UUID = PreparedForIds(_CONSUMERS.where(consumers.c.uuid.in_(IDS)))
_CONSUMERS_OF_PROVIDER = _CONSUMERS.where(
    consumers.c.uuid.in_(
        sa.select(allocations.c.consumer_id).where(
            allocations.c.resource_provider_id == sa.bindparam("provider")
        )
    )
)


def consumers_by_uuid(tx: Tx, uuids: Iterable[ConsumerUuid]) -> dict[ConsumerUuid, Consumer]:
    """The consumers among these that exist."""
    return _by_uuid(_CONSUMERS_BY_UUID.rows(tx, uuids))


def consumers_of_provider(tx: Tx, provider_id: ProviderId) -> dict[ConsumerUuid, Consumer]:
    """The consumers that hold something of one provider."""
    return _by_uuid(tx.execute(_CONSUMERS_OF_PROVIDER, {"provider": provider_id}))


def _by_uuid(rows: Iterable[Sequence[Any]]) -> dict[ConsumerUuid, Consumer]:
    return {
        ConsumerUuid(uuid): Consumer(
            ConsumerUuid(uuid), project, user, Generation(generation), kind
        )
        for uuid, project, user, generation, kind in rows
    }


_HOLDERS = (
    sa.select(allocations.c.resource_class_id)
    .distinct()
    .where(allocations.c.resource_provider_id == sa.bindparam("provider"))
)


def held_classes(tx: Tx, provider_id: ProviderId) -> set[ClassId]:
    """The resource classes of a provider of which somebody holds something."""
    rows = tx.execute(_HOLDERS, {"provider": provider_id}).scalars()
    return {ClassId(class_id) for class_id in rows}


# SELECT resource_class_id, MAX(used) FROM allocations JOIN servers ON uuid = consumer_id
#  WHERE resource_provider_id IN (...) GROUP BY resource_class_id
_LARGEST_OF_SERVERS = (
    sa.select(allocations.c.resource_class_id, sa.func.max(allocations.c.used))
    .join(servers, servers.c.uuid == allocations.c.consumer_id)
    .where(allocations.c.resource_provider_id.in_(IDS))
    .group_by(allocations.c.resource_class_id)
)


def largest_of_servers(tx: Tx, ids: Collection[ProviderId]) -> dict[ClassId, int]:
    """The largest amount of each class that one server holds of one of these providers."""
    found: dict[ClassId, int] = {}
    for class_id, used in by_ids.rows(tx, _LARGEST_OF_SERVERS, sorted(ids)):
        # Many providers are asked for in parts, each of which has a largest amount.
        found[class_id] = max(used, found.get(class_id, 0))
    return found


_ROOT = sa.select(
    sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
).where(resource_providers.c.id == sa.bindparam("provider"))


def is_tree_held(tx: Tx, provider_id: ProviderId, but_by: Collection[ConsumerUuid] = ()) -> bool:
    """Whether anybody, but for these, holds anything of a provider or of others in its tree."""
    root = tx.execute(_ROOT, {"provider": provider_id}).scalar()
    is_near = (resource_providers.c.id == root) | (resource_providers.c.root_provider_id == root)
    tree = sa.select(resource_providers.c.id).where(is_near)
    held = sa.select(allocations.c.id).where(allocations.c.resource_provider_id.in_(tree))
    if but_by:
        held = held.where(allocations.c.consumer_id.not_in(sorted(but_by)))
    return tx.execute(held.limit(1)).first() is not None
