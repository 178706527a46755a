"""Database access for the names of resource classes and traits."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ProviderId, TraitId
from innkeeper.domain.placement import NamedThing
from innkeeper.store import records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_traits,
    traits,
)
from innkeeper.store.transactions import Tx


class NameKind(Enum):
    """Selects one of the two tables of names."""

    CLASS = "resource class"
    TRAIT = "trait"


_TABLES = {NameKind.CLASS: resource_classes, NameKind.TRAIT: traits}
_USES: dict[NameKind, sa.Column[Any]] = {
    NameKind.CLASS: inventories.c.resource_class_id,
    NameKind.TRAIT: resource_provider_traits.c.trait_id,
}
_USERS: dict[NameKind, sa.Column[Any]] = {
    NameKind.CLASS: inventories.c.resource_provider_id,
    NameKind.TRAIT: resource_provider_traits.c.resource_provider_id,
}


def listing(
    tx: Tx,
    kind: NameKind,
    *,
    among: Collection[str] | None = None,
    prefix: str | None = None,
    is_used: bool | None = None,
) -> list[NamedThing]:
    """Return the names of a kind that match all conditions, oldest first.

    With ``among``, only these names are returned, sorted by name.
    """
    table = _TABLES[kind]
    query = sa.select(*records.columns(table, NamedThing))
    if among is not None:
        query = query.where(table.c.name.in_(sorted(among)))
    if prefix is not None:
        query = query.where(table.c.name.startswith(prefix, autoescape=True))
    if is_used is not None:
        uses = table.c.id.in_(sa.select(_USES[kind]))
        query = query.where(uses if is_used else sa.not_(uses))
    found = [NamedThing(*row) for row in tx.execute(query.order_by(table.c.id))]
    # Not sorted by the database, since databases disagree on where underscores sort.
    return found if among is None else sorted(found, key=attrgetter("name"))


def by_name(tx: Tx, kind: NameKind, name: str) -> NamedThing | None:
    """Return the resource class or trait with this name."""
    found = listing(tx, kind, among=[name])
    return found[0] if found else None


def class_ids(tx: Tx, among: Collection[str] | None = None) -> dict[str, ClassId]:
    """Return the row ids of the resource classes in ``among``, or of all classes, by name."""
    return {name: ClassId(row_id) for name, row_id in _ids(tx, NameKind.CLASS, among)}


def trait_ids(tx: Tx, among: Collection[str] | None = None) -> dict[str, TraitId]:
    """Return the row ids of the traits in ``among``, or of all traits, by name."""
    return {name: TraitId(row_id) for name, row_id in _ids(tx, NameKind.TRAIT, among)}


_ALL_IDS = {kind: sa.select(table.c.name, table.c.id) for kind, table in _TABLES.items()}
_IDS = {
    kind: PreparedForIds(query.where(_TABLES[kind].c.name.in_(IDS)))
    for kind, query in _ALL_IDS.items()
}


def _ids(tx: Tx, kind: NameKind, among: Collection[str] | None) -> list[Any]:
    if among is None:
        return list(tx.execute(_ALL_IDS[kind]))
    return _IDS[kind].rows(tx, among)


def name_of(tx: Tx, kind: NameKind, row_id: int) -> str:
    """Return the name in a row. The row must exist."""
    table = _TABLES[kind]
    found: str = tx.execute(sa.select(table.c.name).where(table.c.id == row_id)).scalar_one()
    return found


def is_used(tx: Tx, kind: NameKind, row_id: int) -> bool:
    """Return whether any provider has an inventory of this class, or has this trait."""
    column = _USES[kind]
    return tx.execute(sa.select(column).where(column == row_id).limit(1)).first() is not None


def users(tx: Tx, kind: NameKind, row_id: int) -> list[ProviderId]:
    """Return the providers with an inventory of this class, or with this trait, sorted by id."""
    of = sa.select(_USERS[kind]).where(_USES[kind] == row_id).order_by(_USERS[kind])
    return [ProviderId(provider_id) for provider_id in tx.execute(of).scalars()]


def insert(tx: Tx, kind: NameKind, name: str, now: datetime) -> None:
    """Insert a name."""
    tx.execute(_TABLES[kind].insert().values(name=name, created_at=now, updated_at=now))


def rename(tx: Tx, kind: NameKind, row_id: int, name: str, now: datetime) -> None:
    """Change a name. References to the row of the name remain valid."""
    table = _TABLES[kind]
    tx.execute(table.update().where(table.c.id == row_id).values(name=name, updated_at=now))


def delete(tx: Tx, kind: NameKind, row_id: int) -> None:
    """Delete a name, which must not be in use."""
    table = _TABLES[kind]
    tx.execute(table.delete().where(table.c.id == row_id))
