"""The protocol of database backends."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

import sqlalchemy as sa

IDLE_TIMEOUT_S = 15.0


class Engines(NamedTuple):
    """The connections of one process, in two pools.

    Writers have their own pool, so that a write waits for other writes only, never for readers.
    """

    reading: sa.Engine
    writing: sa.Engine

    def dispose(self) -> None:
        """Close all connections."""
        self.reading.dispose()
        self.writing.dispose()


class Trouble(Enum):
    """What a driver's error means; the values are messages for the operator."""

    COLLISION = "another transaction conflicted"
    WAITED = "the wait for other transactions timed out"
    GONE = "the database does not answer"
    CROWDED = "the database has no connection left"
    READ_ONLY = "the database is read-only"
    FULL = "the database's disk is full"
    DISK = "the database's disk reports errors"
    NOT_LET_IN = "the database rejected the service's login"


LEAVES_CONNECTION = frozenset({Trouble.GONE, Trouble.READ_ONLY, Trouble.CROWDED})
"""After these, another connection may reach a server that accepts the work."""


class Backend(Protocol):
    """A kind of database, with a queue for writers.

    Always true: over all processes, one write transaction is open at a time. It sees everything
    that the ones before it committed.
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
        """Create both pools, with durable and isolated connections.

        ``readers_max`` (at least one) is the number of concurrent readers; another one waits for a
        connection, ``busy_timeout_s`` at most. A process that hangs in a transaction blocks all
        writers, so a server ends such a transaction after ``idle_timeout_s``. The backend decides
        the number of writing connections. Errors never quote the parameters of a statement.
        """

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Lock out other upgrades, until :meth:`end_upgrade` or the end of the transaction.

        Raises :class:`~innkeeper.domain.errors.Busy` during another upgrade. It does not wait,
        since a waiting transaction can block the upgrade that it waits for.
        """

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Set up the comparison of texts in an empty database; only check it in others.

        Raises :class:`~innkeeper.domain.errors.Conflict` if different names would compare equal.
        """

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Undo :meth:`begin_upgrade`."""

    def trouble(self, error: Exception) -> Trouble | None:
        """The meaning of a driver's error; ``None`` if it is about the statement."""
