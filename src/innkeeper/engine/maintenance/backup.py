"""Saves a database that is a file, and puts it back.

Always true: a backup is checked before it has its name, and a restored database after it was
put back. What was there before a restore is kept beside it. Only SQLite needs help with that;
other databases have programs of their own.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from innkeeper.domain.auditing import Finding
from innkeeper.domain.errors import Conflict
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.store import copying, dumping, schema, soundness
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store

READERS = 1
WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Checked:
    """What the audit of a copy found; ``None`` where its schema must be brought up first."""

    revision: str | None
    findings: Sequence[Finding] | None


Tell = Callable[[Checked], object]
"""Is called with what the check of a copy found, before anything else is done with the copy."""


def save(source: Path, target: Path, tell: Tell, *, may_overwrite: bool) -> None:
    """Save the database of a file into another one.

    Raises :class:`Conflict` for a database that is damaged, or no database.
    """
    if not source.exists():
        raise Conflict(f"There is no database at {source}.")
    if target.exists() and not may_overwrite:
        raise Conflict(f"{target} is there already; --force overwrites it.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{target} is the database itself.")
    if target.exists():
        copying.demand_earlier(target)
    with _in_words(source):
        copying.save(source, target, lambda copy: tell(_checked(copy)))


def put_back(source: Path, target: Path, now: datetime, tell: Tell) -> Path | None:
    """Put a saved database back; gives where the one is kept that was there, if there was one.

    Raises :class:`Conflict` for a file that is damaged, or of a newer program, and
    :class:`InUse` while the database is used.
    """
    if not source.is_file():
        raise Conflict(f"There is no file {source}.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{source} is the database itself.")
    with _in_words(source):
        copying.check(source)
        _demand_known(source)
    kept = target.with_name(f"{target.name}.before-{now:%Y%m%dT%H%M%S}")
    if kept.exists():
        raise Conflict(f"{kept} is there already.")
    with _in_words(target):
        was_there = copying.restore(source, target, kept)
    tell(_checked(target))
    return kept if was_there else None


def file_of(url: str) -> Path | None:
    """The file of the database; none where it has programs of its own."""
    try:
        name = catalogue.of_url(url).name
        file = dumping.sqlite_file(url)
    except ValueError as error:
        raise Conflict(str(error)) from error
    if file is None and name == "sqlite":
        raise Conflict("The database is in no file, and nothing of it is kept.")
    return file


def programs_of(url: str, file: Path) -> dumping.Commands:
    """What to run where the database has programs of its own for that."""
    return dumping.commands(url, str(file))


@contextmanager
def _in_words(file: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        # It quotes what is damaged.
        raise Conflict(f"Cannot use {file}: it is damaged.") from error
    except sqlite3.Error as error:
        raise Conflict(f"Cannot use {file}: {error}.") from error


@contextmanager
def _store_of(file: Path) -> Iterator[Store]:
    url = f"sqlite:///{file.absolute()}"
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=READERS, busy_timeout_s=WAIT_S))
    try:
        yield store
    finally:
        store.dispose()


def _checked(file: Path) -> Checked:
    with _store_of(file) as store:
        with store.read() as tx:
            current = schema.revision(tx)
            is_usable = schema.is_usable(tx)
        if not is_usable:
            return Checked(current, None)
        return Checked(current, audit.look(Database(store)))


def _demand_known(file: Path) -> None:
    """Raise :class:`Conflict` for a copy that this program could not use."""
    current = copying.revision(file)
    if current not in {each.revision for each in schema.steps()}:
        raise Conflict(f"{file} is at revision {current}, unknown to this program.")
    is_newest = current == schema.newest_revision()
    copying.demand_tables(file, soundness.tables_of(is_newest=is_newest))
