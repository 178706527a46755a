"""What single providers have: inventories, traits and aggregates, read and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, ProviderId, TraitId
from innkeeper.domain.placement import InventoryLine, NamedThing
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
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.min_unit,
        inventories.c.max_unit,
        inventories.c.step_size,
        inventories.c.allocation_ratio,
        inventories.c.updated_at,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .order_by(inventories.c.resource_class_id)
)
_TRAITS = (
    sa.select(traits.c.id, traits.c.name, traits.c.created_at, traits.c.updated_at)
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


def inventory_lines(tx: Tx, provider_id: ProviderId) -> list[InventoryLine]:
    """What a provider has, in the order of the resource classes."""
    found = []
    for class_id, name, *figures, updated_at in tx.execute(_LINES, {"provider": provider_id}):
        found.append(InventoryLine(ClassId(class_id), name, Inventory(*figures), updated_at))
    return found


def traits_of(tx: Tx, provider_id: ProviderId) -> list[NamedThing]:
    """A provider's traits."""
    return [NamedThing(*row) for row in tx.execute(_TRAITS, {"provider": provider_id})]


def aggregates_of(tx: Tx, provider_id: ProviderId) -> dict[str, int]:
    """The uuids of a provider's aggregates with their positions, in the order of joining."""
    return {uuid: position for uuid, position in tx.execute(_AGGREGATES, {"provider": provider_id})}


def change_traits(
    tx: Tx, provider_id: ProviderId, add: Collection[TraitId], remove: Collection[TraitId]
) -> None:
    """Give and take traits."""
    links = resource_provider_traits
    if remove:
        tx.execute(
            links.delete()
            .where(links.c.resource_provider_id == provider_id)
            .where(links.c.trait_id.in_(sorted(remove)))
        )
    rows = [{"resource_provider_id": provider_id, "trait_id": trait} for trait in sorted(add)]
    if rows:
        tx.execute(links.insert(), rows)


def change_aggregates(
    tx: Tx, provider_id: ProviderId, add: Mapping[str, int], remove: Collection[str]
) -> None:
    """Put a provider into aggregates, each at a position, and take it out of others."""
    links = resource_provider_aggregates
    if remove:
        tx.execute(
            links.delete()
            .where(links.c.resource_provider_id == provider_id)
            .where(links.c.aggregate_uuid.in_(sorted(remove)))
        )
    rows = [
        {"resource_provider_id": provider_id, "aggregate_uuid": uuid, "position": position}
        for uuid, position in add.items()
    ]
    if rows:
        tx.execute(links.insert(), rows)
