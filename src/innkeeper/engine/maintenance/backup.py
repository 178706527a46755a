"""Backs up and restores a SQLite database.

Always true: a backup is checked before it gets its final name, and a restored database is checked
after the restore. A restore keeps the previous database next to the new one. Other databases have
their own backup programs.
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
from innkeeper.store import copying, schema, soundness
from innkeeper.store.backends import catalogue
from innkeeper.store.backends.backup_commands import BackupCommands
from innkeeper.store.transactions import Store

Programs = BackupCommands
"""The commands that save and restore a database whose server has its own backup programs."""
READERS = 1
WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a copy of the database.

    ``findings`` is ``None`` if the copy cannot be audited before its schema is upgraded.
    """

    revision: str | None
    findings: Sequence[Finding] | None


Tell = Callable[[Checked], object]
"""A function that gets the result of checking a copy."""


def save(source: Path, target: Path, tell: Tell, *, may_overwrite: bool) -> None:
    """Back up the database file ``source`` to the file ``target``.

    Raises :class:`Conflict` if ``source`` is missing, damaged or not a database, or if ``target``
    must not be overwritten.
    """
    if not source.exists():
        raise Conflict(f"There is no database at {source}.")
    if target.exists() and not may_overwrite:
        raise Conflict(f"{target} already exists. Use --force to overwrite it.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{target} is the database itself. Choose another file.")
    if target.exists():
        copying.demand_earlier(target)
    with _in_words(source):
        copying.save(source, target, lambda copy: tell(_checked(copy)))


def put_back(source: Path, target: Path, now: datetime, tell: Tell) -> Path | None:
    """Restore a backup. Return the path of the previous database, or ``None`` if there was none.

    Raises :class:`Conflict` if the backup is missing, damaged or from a newer release, and
    :class:`InUse` if the database is in use.
    """
    if not source.is_file():
        raise Conflict(f"There is no file {source}.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{source} is the database itself. Choose a backup.")
    with _in_words(source):
        copying.check(source)
        _demand_known(source)
    kept = target.with_name(f"{target.name}.before-{now:%Y%m%dT%H%M%S}")
    if kept.exists():
        raise Conflict(f"{kept} already exists. Move it to another place.")
    with _in_words(target):
        was_there = copying.restore(source, target, kept)
    tell(_checked(target))
    return kept if was_there else None


def way_of(url: str, file: Path) -> Path | Programs:
    """Return the file of a database, or the commands that save and restore the database.

    The commands use ``file`` as the backup.

    Raises :class:`Conflict` if the database cannot be backed up.
    """
    try:
        return catalogue.of_url(url).backup(url, str(file))
    except ValueError as error:
        raise Conflict(str(error)) from error


@contextmanager
def _in_words(file: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        # The message of the original error quotes damaged bytes.
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
    current = copying.revision(file)
    if current not in {each.revision for each in schema.steps()}:
        raise Conflict(f"{file} is at revision {current}, which this program does not know.")
    is_newest = current == schema.newest_revision()
    copying.demand_tables(file, soundness.tables_of(is_newest=is_newest))
