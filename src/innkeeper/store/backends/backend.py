"""The protocol of database backends."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

import sqlalchemy as sa

from innkeeper.store.backends.backup_commands import BackupCommands

IDLE_TIMEOUT_S = 15.0


class Engines(NamedTuple):
    """The connections of one process, in two pools.

    Writers have their own pool, so that a write waits only for other writes, never for readers.
    """

    reading: sa.Engine
    writing: sa.Engine

    def dispose(self) -> None:
        """Close all connections."""
        self.reading.dispose()
        self.writing.dispose()


class Trouble(Enum):
    """The problem that a driver's error shows. The values are messages for the operator."""

    COLLISION = "another transaction conflicted"
    WAITED = "the wait for other transactions timed out"
    GONE = "the database does not answer"
    CROWDED = "the database has no connection left"
    READ_ONLY = "the database is read-only"
    FULL = "the database's disk is full"
    DISK = "the database's disk reports errors"
    NOT_LET_IN = "the database rejected the service's login"


LEAVES_CONNECTION = frozenset({Trouble.GONE, Trouble.READ_ONLY, Trouble.CROWDED})
"""After these problems, a new connection may reach a server that accepts the work."""


class Backend(Protocol):
    """A kind of database, in which writers wait in a queue.

    Always true: across all processes, only one write transaction is open at a time. Each write
    transaction sees everything that earlier ones committed.
    """

    name: str

    def engines(
        self,
        url: str,
        *,
        readers_max: int,
        busy_timeout_s: float,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> Engines:
        """Create the two pools. Commits are durable, and transactions are isolated.

        ``readers_max`` (at least one) limits the concurrent readers. Further readers wait for a
        connection, up to ``busy_timeout_s``. A process that hangs in a transaction blocks all
        writers, so a server ends idle transactions after ``idle_timeout_s``. The backend decides
        the number of writing connections. Errors never quote the parameters of a statement.
        """

    def begin_reading(self, tx: sa.Connection) -> None:
        """Begin a transaction that only reads.

        Call this method before the first statement of the transaction.
        """

    def begin_writing(self, tx: sa.Connection, *, takes_turn: bool) -> None:
        """Wait for the turn to write, and begin a transaction that writes.

        The turn ends when the connection is back in its pool. Only tests write without a turn; see
        :mod:`innkeeper.store.guards`. Raises :class:`~innkeeper.domain.errors.Busy` on a timeout.
        Other errors are SQLAlchemy's.
        """

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Lock out other upgrades, until :meth:`end_upgrade` or the end of the transaction.

        Raises :class:`~innkeeper.domain.errors.Busy` while another upgrade is in progress. This
        method does not wait, since a waiting transaction could block the other upgrade.
        """

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Set the collation of an empty database, or check the collation of an existing one.

        Raises :class:`~innkeeper.domain.errors.Conflict` if different names would compare equal.
        """

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Undo :meth:`begin_upgrade`."""

    def backup(self, url: str, file: str) -> Path | BackupCommands:
        """Return the file of the database, or the backup commands of a database server.

        If the database is a file, the service copies it. Otherwise, the returned commands save the
        database to ``file`` and restore it from ``file``. Raises
        :class:`~innkeeper.domain.errors.Conflict` for a database in memory, and ``ValueError`` for
        an invalid URL.
        """

    def trouble(self, error: Exception) -> Trouble | None:
        """Return the problem that an error shows, or ``None`` if the statement is at fault."""
