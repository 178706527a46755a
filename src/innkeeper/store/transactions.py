"""Begin and commit: the only way to a connection.

Always true: a write is either committed whole, or leaves no trace; what ``Store.write``
returned from without an error is on the disk.

May be false: that a commit which raised did *not* happen. The connection may have died between
the commit and its answer; that is why every claim carries its consumer's id, and a retry finds
its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from innkeeper.domain.errors import Busy, Unavailable
from innkeeper.store.backends.backend import Backend, Engines
from innkeeper.store.guards import WITHOUT_TURN, Guards

Tx = sa.Connection
"""An open transaction. Rooms hand it on; only the store speaks SQL on it."""

Listener = Callable[[str, frozenset[str]], None]
"""Told after a commit: a topic, and what was noted under it."""
_NOTES = "innkeeper_notes"
_GUARDS = "innkeeper_guards"


def note(tx: Tx, topic: str, names: Iterable[str]) -> None:
    """Have the store's listeners told about ``names`` once this transaction is committed.

    May be false: that what was noted did happen. A step that was undone has noted too, so a
    listener looks for itself.
    """
    notes: dict[str, set[str]] = tx.info.setdefault(_NOTES, {})
    notes.setdefault(topic, set()).update(names)


def guards_of(tx: Tx) -> Guards:
    """What the store of a writing transaction was made with."""
    guards: Guards = tx.info[_GUARDS]
    return guards


class Store:
    """A database, and the transactions on it. Shared by all threads of a process."""

    def __init__(
        self, backend: Backend, engines: Engines, guards: Guards | None = None
    ) -> None:
        self.backend = backend
        self.engines = engines
        self._guards = guards or Guards()
        self._writing = engines.writing
        if not self._guards.turns:
            self._writing = engines.writing.execution_options(**{WITHOUT_TURN: True})
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Have ``listener`` told, in the writing thread, what each commit has noted."""
        self._listeners.append(listener)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """One moment of the store, seen unchanged until the block ends.

        Raises :class:`Busy` where more read at the same time than there are connections for.
        """
        try:
            with self.engines.reading.connect() as tx, tx.begin():
                yield tx
        except sa.exc.SQLAlchemyError as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from error

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that is committed at the block's end, or rolled back on an error.

        Raises :class:`Unavailable` where the database does not take the write at present;
        :class:`Busy` if that is because of other writers, for whom it has waited.
        """
        try:
            with self._writing.connect() as tx:
                # Connections are used again; what the last transaction noted is not ours.
                tx.info.pop(_NOTES, None)
                tx.info[_GUARDS] = self._guards
                with tx.begin():
                    yield tx
                notes = tx.info.pop(_NOTES, {})
        except sa.exc.SQLAlchemyError as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from error
        for topic, names in notes.items():
            for listener in self._listeners:
                listener(topic, frozenset(names))

    def _refusal(self, error: sa.exc.SQLAlchemyError) -> Unavailable | None:
        """What the caller is told in place of an error; ``None`` leaves it as it is."""
        # The text of the driver stays in the log: it can hold SQL.
        if isinstance(error, sa.exc.TimeoutError):
            return Busy("No connection to the database came free in time.")
        if self.backend.is_conflict(error):
            return Busy("The database is busy with others' writes.")
        if isinstance(error, sa.exc.OperationalError):
            return Unavailable("The database does not answer at the moment.")
        return None

    def dispose(self) -> None:
        """Close all connections; for the end of the process."""
        self.engines.dispose()


def greet(tx: Tx) -> None:
    """Have the database say anything at all."""
    tx.exec_driver_sql("SELECT 1")


@contextmanager
def step(tx: Tx) -> Iterator[None]:
    """One part of a shared transaction that stands or falls alone.

    A refusal inside undoes what this part wrote, and nothing else.
    """
    tx.exec_driver_sql("SAVEPOINT step")
    try:
        yield
    except Exception:
        tx.exec_driver_sql("ROLLBACK TO SAVEPOINT step")
        tx.exec_driver_sql("RELEASE SAVEPOINT step")
        raise
    tx.exec_driver_sql("RELEASE SAVEPOINT step")
