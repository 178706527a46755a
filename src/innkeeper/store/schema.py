"""Schema upgrades, and the standard names of resource classes and traits.

Always true: a program never changes a schema that is newer than the program, and uses such a schema
only if the schema is marked as compatible with the program. Each step names the revision of the
oldest programs that may use the schema after it (``compatible_since``). The database stores the
newest of these revisions, so that older programs can check whether they may use the schema.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Event

import os_resource_classes
import os_traits
import sqlalchemy as sa
import structlog

from innkeeper.domain.errors import Busy, Conflict, Unreachable
from innkeeper.store.tables.ordering import schema_promises
from innkeeper.store.tables.placement import resource_classes, traits
from innkeeper.store.transactions import Store, Tx

LOG = structlog.get_logger("innkeeper.store")
UPGRADE_WITHIN_S = 600.0
"""How long a program waits for another program's upgrade. Altering a table of a million rows takes
minutes."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
JITTER_OF = 1_000
VERSIONS = Path(__file__).parent / "migrations" / "versions"
REVISIONS = sa.table("alembic_version", sa.column("version_num"))
"""Alembic's table. It has at most one row, with the revision of the database."""
CONSTANT = re.compile(r'^(\w+) = "(\w+)"$', re.MULTILINE)
SUMMARY = re.compile(r'"""(.*?)(?:"""|\n\n)', re.DOTALL)


def revision(tx: Tx) -> str | None:
    """Return the revision of the database, or ``None`` if the database is empty."""
    if not sa.inspect(tx).has_table(REVISIONS.name):
        return None
    found = tx.execute(sa.select(REVISIONS.c.version_num)).scalar()
    return None if found is None else str(found)


def newest_revision() -> str:
    """Return the revision that this program expects."""
    return steps()[-1].revision


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One revision of the schema.

    ``compatible_since`` is the revision of the oldest programs that may use the new schema.
    """

    revision: str
    summary: str
    compatible_since: str


@cache
def steps() -> tuple[SchemaStep, ...]:
    """Return all steps that this program knows, oldest first. The result is cached.

    The files of the steps are read but not imported. To import them would also import Alembic,
    which takes a tenth of the time of a start, and is only needed for an upgrade.
    """
    texts = (path.read_text(encoding="utf-8") for path in sorted(VERSIONS.glob("[0-9]*.py")))
    found = tuple(map(_step, texts))
    assert found, "the files of the steps are installed"
    return found


def _step(text: str) -> SchemaStep:
    constants, summary = dict(CONSTANT.findall(text)), SUMMARY.match(text)
    assert summary is not None, "every step has a docstring"
    found = str(constants["revision"])
    # Without the constant, a step is compatible with no older program.
    return SchemaStep(found, summary[1], str(constants.get("compatible_since", found)))


def steps_from(current: str | None) -> tuple[SchemaStep, ...]:
    """Return the steps that a database at this revision lacks."""
    known = steps()
    if current is None:
        return known
    return known[[each.revision for each in known].index(current) + 1 :]


def compatible_since(taken: Sequence[SchemaStep]) -> str:
    """Return the revision of the oldest programs that may run after these steps."""
    return max((each.compatible_since for each in taken), default="")


def is_usable(tx: Tx) -> bool:
    """Return whether the database has this program's revision or a compatible newer one."""
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
    """Upgrade the schema and the standard names; return whether the schema changed.

    If several programs start concurrently, one program upgrades. The other programs wait, and raise
    :class:`Busy` after ``UPGRADE_WITHIN_S``. A newer schema is left unchanged. Raises
    :class:`Conflict` if the newer schema is incompatible.
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
    raise AssertionError("_pauses() never stops yielding")


def _try(store: Store, now: datetime) -> bool:
    try:
        return _bring_up(store, now)
    except Unreachable as error:
        # The database answered a moment ago. Another program is upgrading it, and has created the
        # table that writers queue for, but not yet its row.
        raise Busy(error.message) from error


def _pauses() -> Iterator[float]:
    """Yield growing pauses with jitter."""
    pause_s = FIRST_PAUSE_S
    while pause_s > 0:
        yield pause_s * (0.5 + time.perf_counter_ns() // 100 % JITTER_OF / JITTER_OF)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _is_up(store: Store) -> bool:
    """Return whether the schema and the standard names are up to date. Blocks no other writers."""
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
        # Another program may have upgraded the schema while this one waited for its turn.
        if _is_of_newer(tx):
            return False
        missing = steps_from(revision(tx))
        if missing:
            # Alembic is imported only here; see ``steps``.
            from innkeeper.store.migrations import running  # noqa: PLC0415

            running.upgrade(tx)
        _promise(tx, compatible_since(steps()))
        for table, names in STANDARD_NAMES:
            if rows := _missing_names(tx, table, names):
                moments = {"created_at": now, "updated_at": now}
                tx.execute(table.insert(), [{"name": name, **moments} for name in rows])
    return bool(missing)


def _is_of_newer(tx: Tx) -> bool:
    """Return whether the schema is newer than this program.

    Raises :class:`Conflict` if a newer schema is incompatible.
    """
    current = revision(tx)
    if current is None or current in {each.revision for each in steps()}:
        return False
    if is_usable(tx):
        return True
    raise Conflict(
        f"The database is at revision {current}, but the newest revision that this program knows "
        f"is {newest_revision()}. Use a newer program."
    )


def _promise(tx: Tx, since: str) -> None:
    # A program that was killed after its last step may not have written this row.
    if _promised(tx) != since:
        tx.execute(schema_promises.delete())
        tx.execute(schema_promises.insert(), {"id": 1, "compatible_since": since})


@contextmanager
def _alone(store: Store, tx: Tx) -> Iterator[None]:
    store.backend.begin_upgrade(tx)
    try:
        # Inside the lock, since another program may have filled an empty database just before.
        store.backend.prepare(tx, is_empty=revision(tx) is None)
        yield
    finally:
        # An invalidated connection has released the lock already.
        if not tx.invalidated:
            store.backend.end_upgrade(tx)


STANDARD_NAMES = (
    (resource_classes, os_resource_classes.STANDARDS),
    (traits, os_traits.get_traits()),
)


def _missing_names(tx: Tx, table: sa.Table, names: list[str]) -> list[str]:
    existing = set(tx.execute(sa.select(table.c.name)).scalars())
    return [name for name in names if name not in existing]
