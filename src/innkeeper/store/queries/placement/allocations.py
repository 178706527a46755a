"""Queries for allocations and their consumers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import Allocation, Consumer
from innkeeper.store import by_ids, records
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


def of_consumers(tx: Tx, uuids: Iterable[ConsumerUuid]) -> list[Allocation]:
    """Return the allocations of these consumers. Each consumer's allocations are ordered by id."""
    return [Allocation(*row) for row in by_ids.rows(tx, _OF_CONSUMERS, uuids)]


def of_provider(tx: Tx, provider_id: ProviderId) -> list[Allocation]:
    """Return the allocations on a provider."""
    rows = tx.execute(_ROWS.where(allocations.c.resource_provider_id == provider_id))
    return [Allocation(*row) for row in rows]


_CONSUMERS = sa.select(*records.columns(consumers, Consumer))
_CONSUMERS_BY_UUID = PreparedForIds(_CONSUMERS.where(consumers.c.uuid.in_(IDS)))


def consumers_by_uuid(tx: Tx, uuids: Iterable[ConsumerUuid]) -> dict[ConsumerUuid, Consumer]:
    """Return the consumers with these uuids. Unknown uuids are ignored."""
    return _by_uuid(_CONSUMERS_BY_UUID.rows(tx, uuids))


def consumers_of_provider(tx: Tx, provider_id: ProviderId) -> dict[ConsumerUuid, Consumer]:
    """Return the consumers with allocations on a provider."""
    on_it = sa.select(allocations.c.consumer_id).where(
        allocations.c.resource_provider_id == provider_id
    )
    return _by_uuid(tx.execute(_CONSUMERS.where(consumers.c.uuid.in_(on_it))))


def _by_uuid(rows: Iterable[Sequence[Any]]) -> dict[ConsumerUuid, Consumer]:
    return {each.uuid: each for each in (Consumer(*row) for row in rows)}


def held_classes(tx: Tx, provider_id: ProviderId) -> set[ClassId]:
    """Return the resource classes of the allocations on a provider."""
    query = (
        sa.select(allocations.c.resource_class_id)
        .distinct()
        .where(allocations.c.resource_provider_id == provider_id)
    )
    return {ClassId(class_id) for class_id in tx.execute(query).scalars()}


# SELECT resource_class_id, MAX(used) FROM allocations JOIN servers ON uuid = consumer_id
#  WHERE resource_provider_id IN (...) GROUP BY resource_class_id
_LARGEST_OF_SERVERS = (
    sa.select(allocations.c.resource_class_id, sa.func.max(allocations.c.used))
    .join(servers, servers.c.uuid == allocations.c.consumer_id)
    .where(allocations.c.resource_provider_id.in_(IDS))
    .group_by(allocations.c.resource_class_id)
)


def largest_of_servers(tx: Tx, ids: Collection[ProviderId]) -> dict[ClassId, int]:
    """Return, by class, the largest allocation of a server on any of these providers."""
    found: dict[ClassId, int] = {}
    for class_id, used in by_ids.rows(tx, _LARGEST_OF_SERVERS, sorted(ids)):
        # Many providers are queried in groups, and each group has its own maximum.
        found[class_id] = max(used, found.get(class_id, 0))
    return found


_ROOT = sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
_ROOTS = sa.select(resource_providers.c.id, _ROOT).where(resource_providers.c.id.in_(IDS))
# SELECT (root) FROM resource_providers WHERE id IN (...) AND EXISTS (an allocation)
_HELD = (
    sa.select(_ROOT)
    .where(sa.exists().where(allocations.c.resource_provider_id == resource_providers.c.id))
    .distinct()
)
# Two queries, because some databases use no index for an OR of both columns.
_HELD_ROOTS = _HELD.where(resource_providers.c.id.in_(IDS))
_HELD_BELOW = _HELD.where(resource_providers.c.root_provider_id.in_(IDS))


def held_trees(tx: Tx, ids: Collection[ProviderId]) -> set[ProviderId]:
    """Return the providers in ``ids`` whose trees have an allocation."""
    roots = {ProviderId(each): root for each, root in by_ids.rows(tx, _ROOTS, ids)}
    held = {
        root
        for query in (_HELD_ROOTS, _HELD_BELOW)
        for (root,) in by_ids.rows(tx, query, sorted(set(roots.values())))
    }
    return {each for each, root in roots.items() if root in held}


def is_tree_held(tx: Tx, provider_id: ProviderId, but_by: Collection[ConsumerUuid] = ()) -> bool:
    """Return whether a provider's tree has allocations of consumers other than ``but_by``."""
    ids, roots = resource_providers.c.id, resource_providers.c.root_provider_id
    root = tx.execute(sa.select(sa.func.coalesce(roots, ids)).where(ids == provider_id)).scalar()
    tree = sa.select(ids).where((ids == root) | (roots == root))
    held = sa.select(allocations.c.id).where(allocations.c.resource_provider_id.in_(tree))
    if but_by:
        held = held.where(allocations.c.consumer_id.not_in(sorted(but_by)))
    return tx.execute(held.limit(1)).first() is not None
