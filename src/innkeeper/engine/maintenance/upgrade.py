"""Which steps a database's schema lacks, and taking them.

Always true: looking changes nothing.
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
    """Where a database is, beside where this program is.

    ``is_known`` is not so of a revision that only a newer program has; ``is_usable`` tells
    whether this program may work on it all the same. ``since`` is the oldest revision whose
    programs may go on beside the schema that the missing steps make.
    """

    current: str | None
    newest: str
    is_usable: bool
    is_known: bool
    missing: Sequence[SchemaStep] = ()
    since: str | None = None


def look(database: Database) -> SchemaState:
    """Where a database is."""

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
    """Take the steps that are missing; tells whether the schema moved."""
    return schema.upgrade(database.store, clock())
