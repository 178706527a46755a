"""Queries for the providers that have inventories and allocations of one class."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.placement import allocations, inventories
from innkeeper.store.transactions import Tx


def with_inventory(tx: Tx, class_id: ClassId, ids: Collection[ProviderId]) -> set[ProviderId]:
    """Return the providers in ``ids`` that have an inventory of a class."""
    return _holders(tx, inventories, class_id, ids)


def with_allocations(tx: Tx, class_id: ClassId, ids: Collection[ProviderId]) -> set[ProviderId]:
    """Return the providers in ``ids`` that have allocations of a class."""
    return _holders(tx, allocations, class_id, ids)


def _holders(
    tx: Tx, table: sa.Table, class_id: ClassId, ids: Collection[ProviderId]
) -> set[ProviderId]:
    query: sa.Select[Any] = (
        sa.select(table.c.resource_provider_id)
        .where(table.c.resource_class_id == class_id, table.c.resource_provider_id.in_(IDS))
        .distinct()
    )
    return {ProviderId(each) for (each,) in by_ids.rows(tx, query, ids)}
