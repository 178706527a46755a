"""Finds the steps that a database's schema lacks, and executes them.

Always true: :func:`look` changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from innkeeper.domain.ids import Clock
from innkeeper.engine.database import Database
from innkeeper.store import schema
from innkeeper.store.schema import SchemaStep
from innkeeper.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The schema revision of a database, compared with this program's revision.

    ``is_known`` is false for a revision that only a newer program knows. ``is_usable`` tells
    whether this program can use the schema. After the ``missing`` steps, programs of the revision
    ``since`` or later can still run.
    """

    current: str | None
    newest: str
    is_usable: bool
    is_known: bool
    missing: Sequence[SchemaStep] = ()
    since: str | None = None


def look(database: Database) -> SchemaState:
    """Return the state of a database's schema."""

    def see(tx: Tx) -> tuple[str | None, bool]:
        return schema.revision(tx), schema.is_usable(tx)

    current, is_usable = database.read(see)
    newest = schema.newest_revision()
    if current is not None and current not in {each.revision for each in schema.steps()}:
        return SchemaState(current, newest, is_usable, is_known=False)
    missing = schema.steps_from(current)
    since = schema.compatible_since(missing) if missing else None
    return SchemaState(current, newest, is_usable, True, missing, since)


def bring_up(database: Database, clock: Clock) -> bool:
    """Execute the missing steps. Return whether the schema was changed."""
    return schema.upgrade(database.store, clock())
