"""Writes forests into a store: all at once, or step by step as clients do.

Always true afterwards: the store contains exactly the forest, in a transaction that the caller
commits or, usually, rolls back.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.store import schema
from innkeeper.store.queries.placement import names
from innkeeper.store.tables import placement as placement_tables
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import (
    aggregates,
    allocations,
    classes,
    inventories,
    providers,
    traits,
)
from innkeeper.systems.placement.allocations import AllocationUpdate
from tests.support.databases import open_store
from tests.support.forests import Forest, PlainProvider

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
PLENTY = Inventory(total=1000)
Rows = list[dict[str, Any]]


def store_in(folder: Path) -> Store:
    """Create a store with only the class and the trait of forests."""
    store = open_store(folder)
    schema.upgrade(store, NOW)
    with store.write() as tx:
        make_names(tx)
    return store


def make_names(tx: Tx) -> None:
    """Create the class and the trait that forests use and that are not standard ones."""
    classes.ensure(tx, "CUSTOM_GOLD", NOW)
    traits.ensure(tx, "CUSTOM_RED", NOW)


def holder(number: int) -> str:
    """Return the consumer of a provider's usage."""
    return f"c0000000-0000-4000-8000-0000000000{number:02}"


# All at once, into an empty store


def plant(tx: Tx, forest: Forest) -> None:
    """Write a forest into a store without providers; adds no change rows."""
    root_of: dict[int, int] = {}
    for each in forest:
        root_of[each.number] = each.number if each.parent is None else root_of[each.parent]
    _insert(tx, placement_tables.resource_providers, [_row(each, root_of) for each in forest])
    has, held, marks, groups = _rows(tx, forest)
    _insert(tx, placement_tables.inventories, has)
    _insert(tx, placement_tables.allocations, held)
    _insert(tx, placement_tables.resource_provider_traits, marks)
    _insert(tx, placement_tables.resource_provider_aggregates, groups)


def _insert(tx: Tx, table: sa.Table, rows: Rows) -> None:
    if rows:
        tx.execute(table.insert(), rows)


def _row_id(number: int) -> int:
    return 1 + number


def _row(one: PlainProvider, root_of: dict[int, int]) -> dict[str, Any]:
    is_root = one.parent is None
    return {
        "id": _row_id(one.number),
        "uuid": one.uuid,
        "name": one.uuid,
        "generation": 0,
        "can_host": 0,
        "parent_provider_id": None if one.parent is None else _row_id(one.parent),
        "root_provider_id": None if is_root else _row_id(root_of[one.number]),
        "created_at": NOW,
        "updated_at": NOW,
    }


def _rows(tx: Tx, forest: Forest) -> tuple[Rows, Rows, Rows, Rows]:
    class_ids = names.class_ids(tx, {name for each in forest for name in each.inventories})
    trait_ids = names.trait_ids(tx, {name for each in forest for name in each.traits})
    has: Rows = []
    held: Rows = []
    marks: Rows = []
    groups: Rows = []
    for each in forest:
        provider = {"resource_provider_id": _row_id(each.number)}
        for name, inventory in each.inventories.items():
            line = {**provider, "resource_class_id": class_ids[name]}
            amounts = {part: getattr(inventory, part) for part in Inventory.__slots__}
            has.append({**line, **amounts, "created_at": NOW, "updated_at": NOW})
            if name in each.used:
                used = {"used": each.used[name], "consumer_id": holder(each.number)}
                held.append({**line, **used, "created_at": NOW})
        marks += [{**provider, "trait_id": trait_ids[name]} for name in each.traits]
        groups += [{**provider, "aggregate_uuid": uuid} for uuid in each.aggregates]
    return has, held, marks, groups


# Step by step


def change(tx: Tx, before: Forest, after: Forest) -> None:
    """Turn one forest into another as clients do, with change rows for followers."""
    was = {each.number: each for each in before}
    there = {each.number for each in after}
    for each in reversed(before):
        if each.number not in there:
            _hold(tx, each, {})
            providers.delete(tx, each.uuid, NOW)
    for each in after:
        _make(tx, each, was.get(each.number))


def _make(tx: Tx, wanted: PlainProvider, was: PlainProvider | None) -> None:
    uuid = wanted.uuid
    parent = None if wanted.parent is None else PlainProvider(wanted.parent).uuid
    if was is None:
        providers.create(tx, uuid, uuid, parent, now=NOW)
        was = PlainProvider(wanted.number, wanted.parent)
    if wanted.parent != was.parent:
        providers.hang(tx, uuid, parent, NOW)
    if wanted.traits != was.traits:
        traits.replace(tx, uuid, None, wanted.traits, NOW)
    if wanted.aggregates != was.aggregates:
        # Old clients neither send the generation nor advance it.
        is_old = wanted.number % 2 == 0
        seen = None if is_old else providers.get(tx, uuid).generation
        aggregates.replace(tx, uuid, seen, wanted.aggregates, NOW)
    if wanted.used != was.used:
        # With room for the future usage, which may be more than the capacity.
        _stock(tx, wanted, dict.fromkeys(wanted.inventories | was.inventories, PLENTY))
        _hold(tx, wanted, wanted.used)
        _stock(tx, wanted, wanted.inventories)
    elif wanted.inventories != was.inventories:
        _stock(tx, wanted, wanted.inventories)


def _stock(tx: Tx, one: PlainProvider, has: dict[str, Inventory]) -> None:
    seen = providers.get(tx, one.uuid).generation
    inventories.replace(tx, one.uuid, seen, has, NOW)


def _hold(tx: Tx, one: PlainProvider, used: dict[str, int]) -> None:
    resources: dict[str, dict[str, int]] = {one.uuid: used} if used else {}
    request_body = AllocationUpdate(
        holder(one.number), resources, asks_no_generation=True, project_id="project", user_id="user"
    )
    allocations.write(tx, [request_body], NOW)
