"""Bring a database to the newest schema, and fill in the standard names.

Always true: a database whose revision this program does not know is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import alembic.command
import alembic.config
import os_resource_classes
import os_traits
import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from innkeeper.domain.errors import Conflict
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
    head = ScriptDirectory.from_config(config()).get_current_head()
    assert head is not None
    return head


def upgrade(store: Store, now: datetime) -> bool:
    """Bring the schema and the standard names up to date; tell whether the schema moved.

    Raises :class:`Conflict` for a database of a newer program.
    """
    newest = newest_revision()
    with store.write() as tx, _alone(store, tx):
        current = revision(tx)
        if current != newest:
            known = {
                step.revision for step in ScriptDirectory.from_config(config()).walk_revisions()
            }
            if current is not None and current not in known:
                raise Conflict(
                    f"The database is at revision {current}, unknown to this program."
                )
            alembic.command.upgrade(config(tx), "head")
        _add_missing_names(tx, resource_classes, os_resource_classes.STANDARDS, now)
        _add_missing_names(tx, traits, os_traits.get_traits(), now)
    return current != newest


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
