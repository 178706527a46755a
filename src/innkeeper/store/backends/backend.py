"""What a database must be able to do to be a store."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

import sqlalchemy as sa

IDLE_TIMEOUT_S = 15.0


class Engines(NamedTuple):
    """The connections of one process, in two pools.

    Those that write are apart: a write waits for other writes, and never for a connection
    behind those who only read.
    """

    reading: sa.Engine
    writing: sa.Engine

    def dispose(self) -> None:
        """Close all connections."""
        self.reading.dispose()
        self.writing.dispose()


class Trouble(Enum):
    """What a driver's error means for who asked, in words for who runs the database."""

    COLLISION = "another transaction was in the way"
    WAITED = "others were in the way for too long"
    GONE = "the database does not answer"
    CROWDED = "the database has no connection left"
    READ_ONLY = "the database is read-only"
    FULL = "the database's disk is full"
    DISK = "the database's disk gives errors"
    NOT_LET_IN = "the database does not let this service in"


LEAVES_CONNECTION = frozenset({Trouble.GONE, Trouble.READ_ONLY, Trouble.CROWDED})
"""Behind these, another connection may lead to a server that takes the same work."""


class Backend(Protocol):
    """One kind of database, with a queue for those who write.

    Always true: of the transactions of its writing connections, of all processes, one is open
    at a time. It sees all that the ones before it committed.
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
        """Make both pools of connections; every one of them is durable and isolated.

        ``readers_max`` (at least one) is how many threads read at the same moment; one more
        waits for a connection, ``busy_timeout_s`` at most. A process that stops in the middle
        of a transaction, say for good, keeps all others from writing; where there is a server,
        it ends such a transaction after ``idle_timeout_s``. How many write at the same moment
        is the backend's to say. No error of theirs quotes the parameters of a statement.
        """

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Keep other processes from upgrading, until the end of this or the transaction's.

        Raises :class:`~innkeeper.domain.errors.Busy` while another one does so. It waits for
        nothing: who waits in a transaction can be in the way of what is waited for.
        """

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """See to it that names can be kept here; ``is_empty`` if nothing was ever written.

        Raises :class:`~innkeeper.domain.errors.Conflict` where they cannot. Where something
        was written, nothing is changed.
        """

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Undo :meth:`begin_upgrade`."""

    def trouble(self, error: Exception) -> Trouble | None:
        """What an error of the driver means; ``None`` if it is about what was asked."""
