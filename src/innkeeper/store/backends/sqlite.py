"""SQLite, the embedded default: one file, one writer at a time, any number of readers.

Always true: an acknowledged write is on disk (``synchronous=FULL`` in WAL mode flushes the log at
every commit). Foreign keys are enforced. Readers never wait for the writer. Writers wait in a queue
outside of SQLite, then take its write lock. A database file that is created here is readable only
by its owner, and errors quote no parameters.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from innkeeper.domain.errors import Conflict
from innkeeper.store import driver
from innkeeper.store.backends import addresses
from innkeeper.store.backends.backend import IDLE_TIMEOUT_S, Engines, Trouble
from innkeeper.store.backends.pooling import encode_json
from innkeeper.store.backends.turns import FileTurns

NAME = "sqlite"
PAGE_CACHE_KIB = 64 * 1024
"""The page cache of each connection. A million allocations with indexes take about 200 MB, but
claims touch only the upper levels of the trees and the ends of the tables."""
CHECKPOINT_PAGES = 4_000
"""A checkpoint copies the log into the file once the log has this size (16 MB). Batches change the
same pages repeatedly, so less frequent checkpoints copy less."""
STATEMENTS_CACHED = 512
WRITERS_MAX = 1
"""The number of writing connections. A second connection could only wait for the write lock. So
threads wait for the single connection instead, with the same timeout."""
IN_MEMORY = ":memory:"
TURNS = "innkeeper_turns"
"""The key under which the pool stores the queue in a writing connection's record."""
PLAIN_CODE = 0xFF
TROUBLES = {
    # Both occur only after the lock wait timeout.
    sqlite3.SQLITE_BUSY: Trouble.WAITED,
    sqlite3.SQLITE_LOCKED: Trouble.WAITED,
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_IOERR: Trouble.DISK,
    sqlite3.SQLITE_CORRUPT: Trouble.DISK,
    sqlite3.SQLITE_CANTOPEN: Trouble.GONE,
}


class Sqlite:
    """See :class:`innkeeper.store.backends.backend.Backend`."""

    name = NAME

    def engines(
        self,
        url: str,
        *,
        readers_max: int,
        busy_timeout_s: float,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> Engines:
        """Create the pools. ``idle_timeout_s`` has no effect, since SQLite has no server.

        Raises :class:`OSError` if the file does not exist and cannot be created.
        """
        assert readers_max >= 1, "a pool of size 0 has no limit"
        file = _file(sa.make_url(url))
        if file is not None:
            _make(file)
        pools = Engines(
            reading=_engine(url, readers_max, busy_timeout_s),
            writing=_engine(url, WRITERS_MAX, busy_timeout_s),
        )
        if file is not None:
            _queue(pools.writing, FileTurns(file, busy_timeout_s))
        return pools

    def begin_reading(self, tx: sa.Connection) -> None:
        """See :class:`Backend`."""
        driver.execute(tx, "BEGIN")

    def begin_writing(self, tx: sa.Connection, *, takes_turn: bool) -> None:
        """See :class:`Backend`. The turn is taken before the write lock."""
        if not takes_turn:
            driver.execute(tx, "BEGIN")
            return
        turns = tx.info.get(TURNS)
        if turns is not None:
            turns.take()
        # Take the write lock at once. If another transaction wrote in between, SQLite refuses to
        # turn a read transaction into a write transaction, without waiting.
        driver.execute(tx, "BEGIN IMMEDIATE")

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Do nothing, since the transaction that alters the tables locks out all other writers."""

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Do nothing, since SQLite compares texts by bytes."""

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Do nothing, since the end of the transaction releases its lock."""

    def backup(self, url: str, file: str) -> Path:
        """See :class:`Backend`."""
        del file
        at, _ = addresses.split(url)
        if at.database in (None, "", IN_MEMORY):
            raise Conflict("The database is only in memory, so it cannot be backed up or restored.")
        return Path(str(at.database))

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`. The last byte of an extended error code is the primary code."""
        code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
        return None if code is None else TROUBLES.get(code & PLAIN_CODE)


def _engine(url: str, connections_max: int, busy_timeout_s: float) -> sa.Engine:
    engine = sa.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=busy_timeout_s,
        connect_args={
            "timeout": busy_timeout_s,
            "check_same_thread": False,
            "cached_statements": STATEMENTS_CACHED,
        },
        json_serializer=encode_json,
        json_deserializer=msgspec.json.decode,
        # Errors are logged, and parameters can be password hashes, signing keys or user data.
        hide_parameters=True,
    )
    sa.event.listen(engine, "connect", _prepare)
    return engine


def _file(url: sa.URL) -> Path | None:
    """Return the file to create, or ``None`` if the URL names no file or forbids its creation."""
    name = url.database or IN_MEMORY
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    if name == IN_MEMORY or url.query.get("mode", "rwc") != "rwc":
        return None
    return Path(name)


def _make(file: Path) -> None:
    # The file contains the key that signs tokens, and SQLite would make it readable by all users.
    # SQLite gives its other files the same permissions.
    with suppress(FileExistsError):
        file.touch(mode=0o600, exist_ok=False)


def _queue(writing: sa.Engine, turns: FileTurns) -> None:
    """Make each writer wait for its turn before it takes the write lock.

    The listeners are on the pool. A listener on the engine would slow down each transaction by 40
    microseconds, since SQLAlchemy then prepares all kinds of events for each connection.
    """

    def enter(_raw: sqlite3.Connection, record: Any) -> None:
        record.info[TURNS] = turns

    sa.event.listen(writing, "connect", enter)
    # The turn ends when the connection is back in its pool.
    sa.event.listen(writing, "checkin", lambda *_: turns.give_back())
    sa.event.listen(writing, "close", lambda *_: turns.close())


def _prepare(raw: sqlite3.Connection, _record: Any) -> None:
    # The driver must not begin transactions; ``begin_reading`` and ``begin_writing`` do.
    raw.isolation_level = None
    cursor = raw.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    cursor.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")
    cursor.close()
