"""Bring a database to the newest schema, and fill in the standard names.

Always true: no program changes a schema that is newer than itself, and none uses it whose steps
do not promise that it may. Each step says which programs may go on beside it
(``compatible_since``); the strictest of them is kept in the database, for those programs that
do not have the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import alembic.command
import alembic.config
import os_resource_classes
import os_traits
import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory

from innkeeper.domain.errors import Conflict
from innkeeper.store.tables.ordering import schema_promises
from innkeeper.store.tables.placement import resource_classes, traits
from innkeeper.store.transactions import Store, Tx

SCRIPTS = Path(__file__).parent / "migrations"


def config(connection: sa.Connection | None = None) -> alembic.config.Config:
    """Alembic's settings, for a connection that is open already."""
    made = alembic.config.Config()
    made.set_main_option("script_location", str(SCRIPTS))
    made.attributes["connection"] = connection
    return made


def revision(tx: Tx) -> str | None:
    """The revision of the database; ``None`` if it is empty."""
    return MigrationContext.configure(tx).get_current_revision()


def newest_revision() -> str:
    """The revision that this program expects."""
    return steps()[-1].revision


@dataclass(frozen=True, slots=True)
class Step:
    """One revision of the schema: what it does, and the oldest programs that may go on."""

    revision: str
    summary: str
    compatible_since: str


def steps() -> list[Step]:
    """All steps that this program knows, from the first on."""
    scripts = ScriptDirectory.from_config(config()).walk_revisions()
    return [_step(each) for each in reversed(list(scripts))]


def _step(script: Script) -> Step:
    # A step that promises nothing is one behind which nobody may stay.
    promised = getattr(script.module, "compatible_since", script.revision)
    return Step(script.revision, script.doc, promised)


def steps_from(current: str | None) -> list[Step]:
    """The steps that a database at this revision lacks."""
    known = steps()
    if current is None:
        return known
    return known[[each.revision for each in known].index(current) + 1 :]


def compatible_since(taken: list[Step]) -> str:
    """The oldest programs that may go on beside a schema that has taken these steps.

    That is what the strictest of them says.
    """
    return max((each.compatible_since for each in taken), default="")


def is_usable(tx: Tx) -> bool:
    """Whether this program may work on the database as it is.

    At its own revision it may, and at a newer one that promises so.
    """
    current = revision(tx)
    if current == newest_revision():
        return True
    if current is None or current in {each.revision for each in steps()}:
        return False
    promised = _promised(tx)
    return promised is not None and promised in {each.revision for each in steps()}


def _promised(tx: Tx) -> str | None:
    if not sa.inspect(tx).has_table(schema_promises.name):
        return None
    found = tx.execute(sa.select(schema_promises.c.compatible_since)).scalar()
    return None if found is None else str(found)


def upgrade(store: Store, now: datetime) -> bool:
    """Bring the schema and the standard names up to date; tell whether the schema moved.

    A database of a newer program is left as it is. Raises :class:`Conflict` for one that this
    program may not work on.
    """
    with store.write() as tx, _alone(store, tx):
        current = revision(tx)
        if current is not None and current not in {each.revision for each in steps()}:
            if is_usable(tx):
                return False
            raise Conflict(
                f"The database is at revision {current}, unknown to this program, which knows "
                f"{newest_revision()} at most."
            )
        missing = steps_from(current)
        if missing:
            alembic.command.upgrade(config(tx), "head")
            _promise(tx, compatible_since(steps()))
        _add_missing_names(tx, resource_classes, os_resource_classes.STANDARDS, now)
        _add_missing_names(tx, traits, os_traits.get_traits(), now)
    return bool(missing)


def _promise(tx: Tx, since: str) -> None:
    tx.execute(schema_promises.delete())
    tx.execute(schema_promises.insert(), {"id": 1, "compatible_since": since})


@contextmanager
def _alone(store: Store, tx: Tx) -> Iterator[None]:
    store.backend.begin_upgrade(tx, is_empty=revision(tx) is None)
    try:
        yield
    finally:
        store.backend.end_upgrade(tx)


def _add_missing_names(tx: Tx, table: sa.Table, names: list[str], now: datetime) -> None:
    there = set(tx.execute(sa.select(table.c.name)).scalars())
    rows = [
        {"name": name, "created_at": now, "updated_at": now}
        for name in names
        if name not in there
    ]
    if rows:
        tx.execute(table.insert(), rows)
