"""Allocations and consumers, read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId, ProviderUuid
from innkeeper.domain.placement import Allocation, Consumer
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
    )
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .order_by(allocations.c.id)
)
_OF_CONSUMERS = _ROWS.where(
    allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True))
)
_OF_PROVIDER = _ROWS.where(allocations.c.resource_provider_id == sa.bindparam("provider"))


def of_consumers(tx: Tx, uuids: Iterable[ConsumerUuid]) -> list[Allocation]:
    """All that these consumers hold."""
    wanted = list(uuids)
    if not wanted:
        return []
    return [_allocation(row) for row in tx.execute(_OF_CONSUMERS, {"uuids": wanted})]


def of_provider(tx: Tx, provider_id: ProviderId) -> list[Allocation]:
    """All that is held of one provider."""
    return [_allocation(row) for row in tx.execute(_OF_PROVIDER, {"provider": provider_id})]


def _allocation(row: Sequence[Any]) -> Allocation:
    consumer, provider_id, uuid, class_id, class_name, used, created_at = row
    return Allocation(
        ConsumerUuid(consumer),
        ProviderId(provider_id),
        ProviderUuid(uuid),
        ClassId(class_id),
        class_name,
        used,
        created_at,
    )


def consumers_by_uuid(tx: Tx, uuids: Iterable[ConsumerUuid]) -> dict[ConsumerUuid, Consumer]:
    """The consumers among these that exist."""
    wanted = list(uuids)
    if not wanted:
        return {}
    rows = tx.execute(
        sa.select(
            consumers.c.uuid,
            consumers.c.project_id,
            consumers.c.user_id,
            consumers.c.generation,
            consumers.c.consumer_type,
        ).where(consumers.c.uuid.in_(wanted))
    )
    return {
        ConsumerUuid(uuid): Consumer(
            ConsumerUuid(uuid), project, user, Generation(generation), kind
        )
        for uuid, project, user, generation, kind in rows
    }
