"""Bring a database to the newest schema, and fill in the standard names.

Always true: no program changes a schema that is newer than itself, and none uses it whose steps
do not promise that it may. Each step says which programs may go on beside it
(``compatible_since``); the strictest of them is kept in the database, for those programs that
do not have the step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Event

import alembic.command
import alembic.config
import os_resource_classes
import os_traits
import sqlalchemy as sa
import structlog
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory

from innkeeper.domain.errors import Busy, Conflict, Unreachable
from innkeeper.store.tables.ordering import schema_promises
from innkeeper.store.tables.placement import resource_classes, traits
from innkeeper.store.transactions import Store, Tx

LOG = structlog.get_logger("innkeeper.store")
UPGRADE_WITHIN_S = 600.0
"""How long one program waits for another that brings the schema up. To alter a table with a
million rows takes minutes."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
JITTER_OF = 1_000
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
class SchemaStep:
    """One revision of the schema: what it does, and the oldest programs that may go on."""

    revision: str
    summary: str
    compatible_since: str


@cache
def steps() -> tuple[SchemaStep, ...]:
    """All steps that this program knows, from the first on. Read once: a start asks often."""
    scripts = ScriptDirectory.from_config(config()).walk_revisions()
    return tuple(_step(each) for each in reversed(list(scripts)))


def _step(script: Script) -> SchemaStep:
    # A step that promises nothing is one behind which nobody may stay.
    promised = getattr(script.module, "compatible_since", script.revision)
    return SchemaStep(script.revision, script.doc, promised)


def steps_from(current: str | None) -> tuple[SchemaStep, ...]:
    """The steps that a database at this revision lacks."""
    known = steps()
    if current is None:
        return known
    return known[[each.revision for each in known].index(current) + 1 :]


def compatible_since(taken: Sequence[SchemaStep]) -> str:
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

    Of several programs that do this at the same time one does, and the others wait for it, for
    ``UPGRADE_WITHIN_S`` at most; then :class:`Busy` is raised. A database of a newer program is
    left as it is. Raises :class:`Conflict` for one that this program may not work on.
    """
    begun_s = time.perf_counter()
    for pause_s in _pauses():
        try:
            if _is_up(store):
                return False
            return _try(store, now)
        except Busy as error:
            waited_s = time.perf_counter() - begun_s
            if waited_s >= UPGRADE_WITHIN_S:
                raise
            LOG.info("schema_awaited", why=error.message, waited_s=round(waited_s, 1))
        Event().wait(pause_s)
    raise AssertionError("the pauses do not end")


def _try(store: Store, now: datetime) -> bool:
    try:
        return _bring_up(store, now)
    except Unreachable as error:
        # It was there a moment ago: whoever is at it has made the table by which writers queue,
        # and has not put its row in yet.
        raise Busy(error.message) from error


def _pauses() -> Iterator[float]:
    """Growing ones, of which other processes do not have the same."""
    pause_s = FIRST_PAUSE_S
    while pause_s > 0:
        yield pause_s * (0.5 + time.perf_counter_ns() // 100 % JITTER_OF / JITTER_OF)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _is_up(store: Store) -> bool:
    """Whether there is nothing to be done; to find that out keeps nobody waiting."""
    with store.read() as tx:
        if _is_of_newer(tx):
            return True
        if steps_from(revision(tx)):
            return False
        store.backend.prepare(tx, is_empty=False)
        return _promised(tx) == compatible_since(steps()) and not any(
            _missing_names(tx, table, names) for table, names in STANDARD_NAMES
        )


def _bring_up(store: Store, now: datetime) -> bool:
    with store.write() as tx, _alone(store, tx):
        # Another program may have done it while the turn was waited for.
        if _is_of_newer(tx):
            return False
        missing = steps_from(revision(tx))
        if missing:
            alembic.command.upgrade(config(tx), "head")
        _promise(tx, compatible_since(steps()))
        for table, names in STANDARD_NAMES:
            if rows := _missing_names(tx, table, names):
                moments = {"created_at": now, "updated_at": now}
                tx.execute(table.insert(), [{"name": name, **moments} for name in rows])
    return bool(missing)


def _is_of_newer(tx: Tx) -> bool:
    """Whether a newer program made the schema, and lets this one use it."""
    current = revision(tx)
    if current is None or current in {each.revision for each in steps()}:
        return False
    if is_usable(tx):
        return True
    raise Conflict(
        f"The database is at revision {current}, unknown to this program, which knows "
        f"{newest_revision()} at most."
    )


def _promise(tx: Tx, since: str) -> None:
    # A program that was killed behind its last step has not got as far.
    if _promised(tx) != since:
        tx.execute(schema_promises.delete())
        tx.execute(schema_promises.insert(), {"id": 1, "compatible_since": since})


@contextmanager
def _alone(store: Store, tx: Tx) -> Iterator[None]:
    store.backend.begin_upgrade(tx)
    try:
        # Asked for behind the lock: before it, the database may have been empty still.
        store.backend.prepare(tx, is_empty=revision(tx) is None)
        yield
    finally:
        # What was thrown away with its connection is undone already.
        if not tx.invalidated:
            store.backend.end_upgrade(tx)


STANDARD_NAMES = (
    (resource_classes, os_resource_classes.STANDARDS),
    (traits, os_traits.get_traits()),
)


def _missing_names(tx: Tx, table: sa.Table, names: list[str]) -> list[str]:
    there = set(tx.execute(sa.select(table.c.name)).scalars())
    return [name for name in names if name not in there]
