"""SQLite, the embedded default: one file, one writer at a time, any number of readers.

Always true: an acknowledged write is on the disk (``synchronous=FULL`` in WAL mode flushes the
log at every commit); foreign keys are enforced; readers never wait for the writer. Processes
that write take turns in a queue beside the file, and SQLite's write lock behind it. A file that
is made here is for its owner alone, and no error quotes what was to be written.
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

from innkeeper.store.backends.backend import IDLE_TIMEOUT_S, Engines, Trouble
from innkeeper.store.backends.turns import FileTurns
from innkeeper.store.guards import WITHOUT_TURN

NAME = "sqlite"
PAGE_CACHE_KIB = 64 * 1024
"""Per connection. A million allocations with their indexes are some 200 MB; the pages that
claims touch are the upper levels of the trees and the recent end of the tables."""
CHECKPOINT_PAGES = 4_000
"""The log is copied into the file once it has so many pages, which is 16 MB. Batches change
many pages again and again: the more of them share a copy, the fewer are copied."""
STATEMENTS_CACHED = 512
WRITERS_MAX = 1
"""Connections that write. A second one could only wait for the one lock there is; so whoever
comes second waits for the connection instead, and as long."""
IN_MEMORY = ":memory:"
PLAIN_CODE = 0xFF
TROUBLES = {
    # Both after all the waiting there was: nothing but a lock is ever in the way.
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
        """Make the pools; connections open their transactions by an explicit BEGIN.

        No server ends what is idle: a process that is stopped with the lock keeps it.

        Raises :class:`OSError` where the file is not there and cannot be made.
        """
        assert readers_max >= 1, "a pool of the size 0 is one without a limit"
        file = _file(sa.make_url(url))
        if file is not None:
            _make(file)
        made = Engines(
            reading=_engine(url, readers_max, busy_timeout_s),
            writing=_engine(url, WRITERS_MAX, busy_timeout_s),
        )
        sa.event.listen(made.reading, "begin", _begin)
        if file is not None:
            _queue(made.writing, FileTurns(file, busy_timeout_s))
        # Behind the queue's listener: who asks for the write lock has its turn already.
        sa.event.listen(made.writing, "begin", _begin_writing)
        return made

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Nothing to do: tables are altered within the transaction, which others wait for."""

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Nothing to do."""

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Nothing to do."""

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`; an extended code has the plain one in its last byte."""
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
        json_serializer=_encode_json,
        json_deserializer=msgspec.json.decode,
        # Hashes of passwords, the key that signs tokens, users' data: none of it may get
        # into a log by way of an error.
        hide_parameters=True,
    )
    sa.event.listen(engine, "connect", _prepare)
    return engine


def _file(url: sa.URL) -> Path | None:
    """The file that may be made and written; ``None`` in memory, or where a URL says how."""
    name = url.database or IN_MEMORY
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    if name == IN_MEMORY or url.query.get("mode", "rwc") != "rwc":
        return None
    return Path(name)


def _make(file: Path) -> None:
    # It holds the key that signs tokens. SQLite itself would make it readable for everybody;
    # to the files beside it, it gives the permissions of this one.
    with suppress(FileExistsError):
        file.touch(mode=0o600, exist_ok=False)


def _queue(writing: sa.Engine, turns: FileTurns) -> None:
    """Have those who write take their turn before they ask for the write lock."""

    def take(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get(WITHOUT_TURN):
            turns.take()

    # The turn ends when the connection is back in its pool.
    sa.event.listen(writing, "begin", take)
    sa.event.listen(writing, "checkin", lambda *_: turns.give_back())
    sa.event.listen(writing, "engine_disposed", lambda _: turns.close())


def _encode_json(thing: Any) -> str:
    return msgspec.json.encode(thing).decode()


def _prepare(raw: sqlite3.Connection, _record: Any) -> None:
    # The driver must not begin transactions by its own rules; ``_begin`` and
    # ``_begin_writing`` say when and how.
    raw.isolation_level = None
    cursor = raw.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    cursor.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_writing(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(WITHOUT_TURN):
        _begin(connection)
        return
    # The write lock at once: a transaction that reads first and asks for the lock later is
    # refused without any waiting when another one wrote in between.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
