"""Bulk database access for providers with their inventories and traits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, ProviderId, TraitId
from innkeeper.store import records
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
)
from innkeeper.store.transactions import Tx

_HEADS = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.name,
    resource_providers.c.generation,
    resource_providers.c.can_host,
)
_CHANGE_INVENTORY = (
    inventories.update()
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .where(inventories.c.resource_class_id == sa.bindparam("class"))
    .values(
        {each: sa.bindparam(f"new_{each.name}") for each in records.columns(inventories, Inventory)}
    )
    .values(updated_at=sa.bindparam("now"))
)
_REMOVE_INVENTORY = (
    inventories.delete()
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .where(inventories.c.resource_class_id == sa.bindparam("class"))
)
_REMOVE_TRAIT = (
    resource_provider_traits.delete()
    .where(resource_provider_traits.c.resource_provider_id == sa.bindparam("provider"))
    .where(resource_provider_traits.c.trait_id == sa.bindparam("trait"))
)


def heads(
    tx: Tx,
    *,
    ids: Collection[ProviderId] = (),
    uuids: Collection[str] = (),
    names: Collection[str] = (),
) -> list[Any]:
    """Return the providers with one of these ids, uuids or names.

    The rows are (id, uuid, name, generation, can_host).
    """
    any_of = []
    if ids:
        any_of.append(resource_providers.c.id.in_(list(ids)))
    if uuids:
        any_of.append(resource_providers.c.uuid.in_(list(uuids)))
    if names:
        any_of.append(resource_providers.c.name.in_(list(names)))
    return list(tx.execute(_HEADS.where(sa.or_(*any_of)))) if any_of else []


def add_providers(tx: Tx, new: Sequence[tuple[str, str]], now: datetime) -> None:
    """Insert root providers that can host servers, given as pairs of (uuid, name)."""
    rows = [
        {"uuid": uuid, "name": name, "generation": 0, "can_host": 1, **_moments(now)}
        for uuid, name in new
    ]
    if rows:
        tx.execute(resource_providers.insert(), rows)


def set_hosting(tx: Tx, ids: Collection[ProviderId], *, can_host: bool) -> None:
    """Set whether these providers can host servers."""
    if ids:
        tx.execute(
            resource_providers.update()
            .where(resource_providers.c.id.in_(list(ids)))
            .values(can_host=int(can_host))
        )


def add_classes(tx: Tx, names: Collection[str], now: datetime) -> None:
    """Insert resource classes."""
    _add_named(tx, resource_classes, names, now)


def add_traits(tx: Tx, names: Collection[str], now: datetime) -> None:
    """Insert traits."""
    _add_named(tx, traits, names, now)


def _add_named(tx: Tx, table: sa.Table, names: Collection[str], now: datetime) -> None:
    rows = [{"name": name, **_moments(now)} for name in sorted(names)]
    if rows:
        tx.execute(table.insert(), rows)


def _moments(now: datetime) -> dict[str, datetime]:
    return {"created_at": now, "updated_at": now}


ProviderInventory = tuple[ProviderId, ClassId, Inventory]


def add_inventories(tx: Tx, new: Sequence[ProviderInventory], now: datetime) -> None:
    """Insert inventories."""
    rows = [
        {
            "resource_provider_id": provider_id,
            "resource_class_id": class_id,
            **records.values(each),
            **_moments(now),
        }
        for provider_id, class_id, each in new
    ]
    if rows:
        tx.execute(inventories.insert(), rows)


def change_inventories(tx: Tx, new: Sequence[ProviderInventory], now: datetime) -> None:
    """Update inventories."""
    rows = [
        {
            "provider": provider_id,
            "class": class_id,
            **{f"new_{name}": value for name, value in records.values(each).items()},
            "now": now,
        }
        for provider_id, class_id, each in new
    ]
    if rows:
        tx.execute(_CHANGE_INVENTORY, rows)


def remove_inventories(tx: Tx, gone: Sequence[tuple[ProviderId, ClassId]]) -> None:
    """Delete inventories."""
    rows = [{"provider": provider_id, "class": class_id} for provider_id, class_id in gone]
    if rows:
        tx.execute(_REMOVE_INVENTORY, rows)


def traits_of(tx: Tx, ids: Collection[ProviderId]) -> dict[int, set[TraitId]]:
    """Return the row ids of these providers' traits, by provider."""
    if not ids:
        return {}
    table = resource_provider_traits
    query = sa.select(table.c.resource_provider_id, table.c.trait_id)
    found: dict[int, set[TraitId]] = {}
    for provider_id, trait_id in tx.execute(
        query.where(table.c.resource_provider_id.in_(list(ids)))
    ):
        found.setdefault(provider_id, set()).add(TraitId(trait_id))
    return found


def give_traits(tx: Tx, given: Sequence[tuple[ProviderId, TraitId]]) -> None:
    """Add traits to providers."""
    rows = [{"resource_provider_id": pid, "trait_id": trait} for pid, trait in given]
    if rows:
        tx.execute(resource_provider_traits.insert(), rows)


def take_traits(tx: Tx, taken: Sequence[tuple[ProviderId, TraitId]]) -> None:
    """Remove traits from providers."""
    rows = [{"provider": pid, "trait": trait} for pid, trait in taken]
    if rows:
        tx.execute(_REMOVE_TRAIT, rows)
