"""Database access for the inventories, traits and aggregates of single providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, ProviderId, TraitId
from innkeeper.domain.placement import InventoryLine, NamedThing
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    traits,
)
from innkeeper.store.transactions import Tx

_LINES = (
    sa.select(
        inventories.c.resource_class_id,
        resource_classes.c.name,
        *records.columns(inventories, Inventory),
        inventories.c.updated_at,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .order_by(inventories.c.resource_class_id)
)
_TRAITS = (
    sa.select(*records.columns(traits, NamedThing))
    .join(resource_provider_traits, resource_provider_traits.c.trait_id == traits.c.id)
    .where(resource_provider_traits.c.resource_provider_id == sa.bindparam("provider"))
    .order_by(traits.c.id)
)
_AGGREGATES = (
    sa.select(
        resource_provider_aggregates.c.aggregate_uuid, resource_provider_aggregates.c.position
    )
    .where(resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider"))
    .order_by(
        resource_provider_aggregates.c.position, resource_provider_aggregates.c.aggregate_uuid
    )
)
_AGGREGATES_OF_ALL = PreparedForIds(
    sa.select(
        resource_provider_aggregates.c.resource_provider_id,
        resource_provider_aggregates.c.aggregate_uuid,
        resource_provider_aggregates.c.position,
    ).where(resource_provider_aggregates.c.resource_provider_id.in_(IDS))
)
_JOIN = Prepared(resource_provider_aggregates.insert())


def inventory_lines(tx: Tx, provider_id: ProviderId) -> list[InventoryLine]:
    """Return the inventories of a provider, ordered by resource class."""
    rows = tx.execute(_LINES, {"provider": provider_id})
    return [
        InventoryLine(ClassId(class_id), name, Inventory(*figures), updated_at)
        for class_id, name, *figures, updated_at in rows
    ]


def traits_of(tx: Tx, provider_id: ProviderId) -> list[NamedThing]:
    """Return the traits of a provider."""
    return [NamedThing(*row) for row in tx.execute(_TRAITS, {"provider": provider_id})]


def aggregates_of(tx: Tx, provider_id: ProviderId) -> dict[str, int]:
    """Return the uuids of a provider's aggregates with their positions, lowest position first.

    The aggregate with the highest position was joined last.
    """
    return {uuid: position for uuid, position in tx.execute(_AGGREGATES, {"provider": provider_id})}


def aggregates_of_all(tx: Tx, ids: Collection[ProviderId]) -> dict[ProviderId, dict[str, int]]:
    """Return the uuids and positions of the aggregates of each of these providers."""
    found: dict[ProviderId, dict[str, int]] = {each: {} for each in ids}
    for provider_id, uuid, position in _AGGREGATES_OF_ALL.rows(tx, ids):
        found[provider_id][uuid] = position
    return found


def join_aggregate(tx: Tx, aggregate: str, positions: Mapping[ProviderId, int]) -> None:
    """Add providers to an aggregate.

    ``positions`` maps each provider to the position of the new aggregate among the provider's
    aggregates. The aggregate with the highest position was joined last.
    """
    rows = [
        {"resource_provider_id": each, "aggregate_uuid": aggregate, "position": position}
        for each, position in positions.items()
    ]
    if rows:
        _JOIN.run(tx, rows)


def leave_aggregate(tx: Tx, aggregate: str, ids: Collection[ProviderId]) -> None:
    """Remove providers from an aggregate."""
    links = resource_provider_aggregates
    those = links.delete().where(links.c.aggregate_uuid == aggregate)
    by_ids.run(tx, those.where(links.c.resource_provider_id.in_(IDS)), ids)


def change_traits(
    tx: Tx, provider_id: ProviderId, add: Collection[TraitId], remove: Collection[TraitId]
) -> None:
    """Add and remove traits of a provider."""
    rows = [{"resource_provider_id": provider_id, "trait_id": trait} for trait in sorted(add)]
    _change_links(tx, provider_id, resource_provider_traits.c.trait_id, rows, remove)


def change_aggregates(
    tx: Tx, provider_id: ProviderId, add: Mapping[str, int], remove: Collection[str]
) -> None:
    """Add a provider to aggregates, each with a position, and remove it from other aggregates."""
    rows = [
        {"resource_provider_id": provider_id, "aggregate_uuid": uuid, "position": position}
        for uuid, position in add.items()
    ]
    _change_links(tx, provider_id, resource_provider_aggregates.c.aggregate_uuid, rows, remove)


def _change_links(
    tx: Tx,
    provider_id: ProviderId,
    column: sa.Column[Any],
    rows: Sequence[Mapping[str, Any]],
    remove: Collection[Any],
) -> None:
    """Remove a provider's links whose ``column`` is in ``remove``, and insert ``rows``."""
    links = column.table
    assert isinstance(links, sa.Table), "the column of a table"
    if remove:
        tx.execute(
            links.delete()
            .where(links.c.resource_provider_id == provider_id)
            .where(column.in_(sorted(remove)))
        )
    if rows:
        tx.execute(links.insert(), rows)
