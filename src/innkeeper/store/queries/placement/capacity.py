"""Queries for providers' inventories and usage, for claims and for the snapshot.

If ``ids`` is ``None``, a query returns the rows of all providers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, Generation, ProviderId, ProviderUuid
from innkeeper.domain.placement import ProviderView
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS, Rows
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.placement import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from innkeeper.store.transactions import Tx

_INVENTORIES = sa.select(
    inventories.c.resource_provider_id,
    inventories.c.resource_class_id,
    *records.columns(inventories, Inventory),
)
_USED = sa.select(
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id,
    sa.func.sum(allocations.c.used),
).group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
_HEADS_OF = PreparedForIds(
    sa.select(
        resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.generation
    ).where(resource_providers.c.id.in_(IDS))
)
_INVENTORIES_OF = PreparedForIds(_INVENTORIES.where(inventories.c.resource_provider_id.in_(IDS)))
_USED_OF = PreparedForIds(_USED.where(allocations.c.resource_provider_id.in_(IDS)))


def views(tx: Tx, ids: Collection[ProviderId]) -> dict[ProviderId, ProviderView]:
    """Return the current inventories and usage of providers. Unknown ids are ignored."""
    has: dict[int, dict[ClassId, Inventory]] = {}
    for provider_id, class_id, *figures in _INVENTORIES_OF.rows(tx, ids):
        has.setdefault(provider_id, {})[class_id] = Inventory(*figures)
    held: dict[int, dict[ClassId, int]] = {}
    for provider_id, class_id, used in _USED_OF.rows(tx, ids):
        held.setdefault(provider_id, {})[class_id] = int(used)
    return {
        ProviderId(provider_id): ProviderView(
            ProviderId(provider_id),
            ProviderUuid(uuid),
            Generation(generation),
            has.get(provider_id, {}),
            held.get(provider_id, {}),
        )
        for provider_id, uuid, generation in _HEADS_OF.rows(tx, ids)
    }


def generation_rows(tx: Tx, ids: Collection[ProviderId] | None) -> Rows:
    """Return rows of (provider, generation)."""
    heads = sa.select(resource_providers.c.id, resource_providers.c.generation)
    return _by_ids(tx, heads, resource_providers.c.id, ids)


def inventory_rows(tx: Tx, ids: Collection[ProviderId] | None) -> Rows:
    """Return rows of (provider, class, total, reserved, min_unit, max_unit, step_size, ratio)."""
    return _by_ids(tx, _INVENTORIES, inventories.c.resource_provider_id, ids)


def used_rows(tx: Tx, ids: Collection[ProviderId] | None) -> Rows:
    """Return rows of (provider, class, sum of the allocations)."""
    return _by_ids(tx, _USED, allocations.c.resource_provider_id, ids)


def trait_rows(tx: Tx, ids: Collection[ProviderId] | None) -> Rows:
    """Return rows of (provider, trait's name)."""
    joined = sa.select(resource_provider_traits.c.resource_provider_id, traits.c.name).join(
        traits, traits.c.id == resource_provider_traits.c.trait_id
    )
    return _by_ids(tx, joined, resource_provider_traits.c.resource_provider_id, ids)


def aggregate_rows(tx: Tx, ids: Collection[ProviderId] | None) -> Rows:
    """Return rows of (provider, aggregate's uuid)."""
    table = resource_provider_aggregates
    links = sa.select(table.c.resource_provider_id, table.c.aggregate_uuid)
    return _by_ids(tx, links, table.c.resource_provider_id, ids)


def _by_ids(
    tx: Tx,
    query: sa.Select[*tuple[Any, ...]],
    column: sa.Column[Any],
    ids: Collection[ProviderId] | None,
) -> Rows:
    return by_ids.narrowed(tx, query, column, None if ids is None else sorted(ids))
