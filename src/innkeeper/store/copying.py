"""Backup and restore of a SQLite database.

A backup can be made while the database is in use. A restore requires that the database is not in
use.

Always true: a copy is a consistent snapshot. A restore is atomic: after a crash, the database is
either unchanged or fully restored.

Other databases have their own backup programs; see :mod:`innkeeper.store.backends.backup_commands`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from innkeeper.domain.errors import Conflict, InUse

PARTIAL = ".partial"
BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps with a database. A stale file would corrupt the database.
"""
LOCK_WAIT_S = 2.0
HEAD = b"SQLite format 3\0"
"""The first bytes of every SQLite database."""
SPOILT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
PRIMARY = 0xFF
"""Masks the primary part of an extended error code."""
LOCKED_FROM, LOCKED_BYTES = 0x40000000, 512
"""The range of SQLite's locks in the file. In WAL mode, every open connection has a lock in this
range."""


def save(source: Path, target: Path, look: Callable[[Path], object]) -> None:
    """Copy the database ``source`` to ``target``, readable only by its owner.

    ``look`` is called with the finished copy before the copy replaces ``target``. If ``look``
    raises, ``target`` is unchanged. Raises :class:`Conflict` for a damaged database.
    """
    partial = target.with_name(target.name + PARTIAL)
    _remove(partial)
    try:
        _make_private(partial)
        with _opened(source, is_read=True) as original, _opened(partial) as copy:
            # Copy all pages at once. A copy in steps would restart after each concurrent write.
            original.backup(copy)
            demand_whole(copy, target)
        look(partial)
        _flush(partial)
        for name in BESIDE:
            Path(f"{target}{name}").unlink(missing_ok=True)
        partial.replace(target)
        _flush(target.parent)
    finally:
        _remove(partial)


def demand_earlier(target: Path) -> None:
    """Raise :class:`Conflict` unless ``target`` is a SQLite database.

    Otherwise, a backup could replace a file of another kind.
    """
    if not _is_database(target):
        raise Conflict(f"{target} exists and is not an earlier backup. Choose another file.")


def demand_whole(connection: sqlite3.Connection, name: Path) -> None:
    """Raise :class:`Conflict` unless the database passes SQLite's integrity check."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    if found != ["ok"]:
        raise Conflict(f"The database {name} is damaged: {'; '.join(found)}.")


def check(file: Path) -> None:
    """Raise :class:`Conflict` unless a file is an undamaged SQLite database."""
    with _opened(file, is_read=True) as connection:
        demand_whole(connection, file)


def revision(file: Path) -> str | None:
    """Return the schema revision of a file.

    Raises :class:`Conflict` for the database of another program.
    """
    with _opened(file, is_read=True) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError as error:
            raise Conflict(f"{file} is not an Innkeeper database.") from error
    return None if row is None else str(row[0])


def demand_tables(file: Path, names: Collection[str]) -> None:
    """Raise :class:`Conflict` for a database that lacks one of these tables."""
    with _opened(file, is_read=True) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        missing = sorted(set(names) - {str(row[0]) for row in rows})
    if missing:
        raise Conflict(f"The database {file} lacks the tables: {', '.join(missing)}.")


def restore(source: Path, target: Path, kept: Path) -> bool:
    """Restore ``source`` into ``target``; return whether ``target`` existed.

    The former content of ``target`` is saved in ``kept``. Raises :class:`InUse` while any process
    has ``target`` open.
    """
    if not target.exists():
        save(source, target, lambda _: None)
        return False
    is_kept = False
    try:
        with _opened(target) as current:
            _lock_exclusively(current, target)
            _make_private(kept)
            with _opened(kept) as old:
                current.backup(old)
            _flush(kept)
            is_kept = True
            with _opened(source, is_read=True) as backup:
                backup.backup(current)
        _flush(target)
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if is_kept:
            raise
        _remove(kept)
        if not _shows_damage(error):
            raise
        # A damaged file cannot be copied, and SQLite cannot tell whether the file is in use.
        with _locked(target):
            save(source, target, lambda _: _move(target, kept))
    return True


def _is_database(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(HEAD)) == HEAD


def _shows_damage(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        # SQLite's error message contains the damaged bytes, which are not valid UTF-8.
        return True
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY in SPOILT


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """A context manager that locks a damaged database.

    Raises :class:`InUse` while any process has the database open.
    """
    with file.open("r+b") as opened:
        try:
            fcntl.lockf(
                opened, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCKED_BYTES, LOCKED_FROM, os.SEEK_SET
            )
        except OSError as error:
            raise _in_use(file) from error
        yield


def _in_use(name: Path) -> InUse:
    return InUse(f"The database {name} is in use. Stop the service first.")


def _lock_exclusively(connection: sqlite3.Connection, name: Path) -> None:
    """Lock a database until the connection is closed, or raise :class:`InUse`."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        # SQLite cannot leave WAL mode while another connection is open.
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        mode = "wal"
    if mode != "delete":
        raise _in_use(name)


@contextmanager
def _opened(file: Path, *, is_read: bool = False) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(file.absolute()))}?mode={'ro' if is_read else 'rw'}"
    if is_read and not Path(f"{file}-wal").exists() and not os.access(file.parent, os.W_OK):
        # SQLite cannot create files in this folder, and there is no log to read.
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S, isolation_level=None)
    with closing(connection):
        yield connection


def _make_private(file: Path) -> None:
    # The file contains password hashes and the key that signs tokens.
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _remove(file: Path) -> None:
    for name in ("", *BESIDE):
        Path(f"{file}{name}").unlink(missing_ok=True)


def _move(file: Path, to: Path) -> None:
    for name in ("", *BESIDE):
        with suppress(FileNotFoundError):
            Path(f"{file}{name}").rename(f"{to}{name}")


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
