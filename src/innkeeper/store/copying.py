"""Whole copies of a SQLite database: made while it is used, and put back while it is not.

Always true: a copy is one moment of the database, and what was being written at that moment is
in it whole or not at all. Putting one back is one transaction of SQLite's: whoever comes after
a crash finds the database as it was before, or as it is to be.

Other databases have programs of their own for this; see :mod:`innkeeper.store.dumping`.
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
"""What SQLite keeps beside a file; of another database, it would spoil the one that came."""
LOCK_WAIT_S = 2.0
HEAD = b"SQLite format 3\0"
"""How each database of SQLite's begins."""
SPOILT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
PRIMARY = 0xFF
"""The part of an error's number that is the same for all of its kind."""
LOCKED_FROM, LOCKED_BYTES = 0x40000000, 512
"""Where in the file SQLite's locks are; whoever has it open in the log's mode holds one."""


def save(source: Path, target: Path, look: Callable[[Path], object]) -> None:
    """Copy the database in ``source`` into the new file ``target``, for its owner alone.

    ``look`` is given the copy before it is there under its name, and may raise. So there is a
    whole copy or what was there before. Raises :class:`Conflict` for a database that is
    damaged.
    """
    partial = target.with_name(target.name + PARTIAL)
    _remove(partial)
    try:
        _make_private(partial)
        with _opened(source, is_read=True) as have, _opened(partial) as made:
            # All pages at once: in parts, it would begin anew with each write in between.
            have.backup(made)
            demand_whole(made, target)
        look(partial)
        _flush(partial)
        for name in BESIDE:
            Path(f"{target}{name}").unlink(missing_ok=True)
        partial.replace(target)
        _flush(target.parent)
    finally:
        _remove(partial)


def demand_earlier(target: Path) -> None:
    """Raise :class:`Conflict` for a file that a backup should not take the place of."""
    if not _is_database(target):
        raise Conflict(f"{target} is no earlier backup, and stays as it is.")


def demand_whole(connection: sqlite3.Connection, name: Path) -> None:
    """Raise :class:`Conflict` unless SQLite finds the database as it should be."""
    told = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    if told != ["ok"]:
        raise Conflict(f"The database {name} is damaged: {'; '.join(told)}.")


def check(file: Path) -> None:
    """Raise :class:`Conflict` unless a file is a whole SQLite database."""
    with _opened(file, is_read=True) as connection:
        demand_whole(connection, file)


def revision(file: Path) -> str | None:
    """The revision of the schema in a file. Raises :class:`Conflict` for another's database."""
    with _opened(file, is_read=True) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError as error:
            raise Conflict(f"{file} is no database of Innkeeper's.") from error
    return None if row is None else str(row[0])


def demand_tables(file: Path, names: Collection[str]) -> None:
    """Raise :class:`Conflict` for a database that lacks one of these tables."""
    with _opened(file, is_read=True) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        missing = sorted(set(names) - {str(row[0]) for row in rows})
    if missing:
        raise Conflict(f"{file} lacks tables: {', '.join(missing)}.")


def put_back(source: Path, target: Path, kept: Path) -> bool:
    """Make the database in ``target`` what ``source`` is; gives whether there was one.

    What was there is in ``kept`` then. Raises :class:`InUse` while any process has it open.
    """
    if not target.exists():
        save(source, target, _nothing_more)
        return False
    is_kept = False
    try:
        with _opened(target) as there:
            _take_alone(there, target)
            _make_private(kept)
            with _opened(kept) as old:
                there.backup(old)
            _flush(kept)
            is_kept = True
            with _opened(source, is_read=True) as have:
                have.backup(there)
        _flush(target)
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if is_kept:
            raise
        _remove(kept)
        if not _tells_of_damage(error):
            raise
        # Of this, nothing can be copied, and SQLite does not tell who uses it.
        with _locked(target):
            save(source, target, lambda _: _move(target, kept))
    return True


def _nothing_more(_: Path) -> None:
    """What one looks at in a copy of what was looked at before."""


def _is_database(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(HEAD)) == HEAD


def _tells_of_damage(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        # SQLite quotes what is damaged, which need not be text.
        return True
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY in SPOILT


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Have a damaged database alone. Raises :class:`InUse` while any process has it open."""
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


def _take_alone(connection: sqlite3.Connection, name: Path) -> None:
    """Be the only one who uses a database, until the connection is closed."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        # Whoever has it open reads by way of the log; it ends only with the last of them.
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
        # Nothing can be made beside it, and nothing is there that would have to be read.
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S, isolation_level=None)
    with closing(connection):
        yield connection


def _make_private(file: Path) -> None:
    # It holds password hashes and the key that signs tokens.
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
