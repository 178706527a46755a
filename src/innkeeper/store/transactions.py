"""Read and write transactions: the only access to database connections.

Always true: a write is committed completely or not at all. When ``Store.write`` returns without an
error, the write is durable.

A write that raised :class:`Doubtful` may have been committed, because the connection was lost
before the commit was confirmed. Every claim contains its consumer's id, so a retry can find the
rows of the lost write. The retry must look for these rows in a write transaction, which waits until
the lost transaction has ended. After every other error, nothing was committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa

from innkeeper.domain.errors import Busy, Collided, Doubtful, NotLetIn, Unavailable, Unreachable
from innkeeper.store import driver
from innkeeper.store.backends.backend import LEAVES_CONNECTION, Backend, Engines, Trouble
from innkeeper.store.guards import Guards

Tx = sa.Connection
"""An open transaction. Other packages pass it as an argument, but only the store executes SQL on
it."""

DATABASE_ERRORS = (sa.exc.SQLAlchemyError,)
"""Errors that end the whole transaction. No code within the transaction may catch them."""

Listener = Callable[[str, frozenset[str]], None]
"""Called after a commit, with a topic and the names that were noted under it."""
_NOTES = "innkeeper_notes"
_GUARDS = "innkeeper_guards"


def note(tx: Tx, topic: str, names: Iterable[str]) -> None:
    """Notify the store's listeners of ``names`` after the commit.

    Notes of a step that was rolled back are dropped with it. After a doubtful commit, listeners are
    notified although the write may not have been committed.
    """
    notes: dict[str, set[str]] = tx.info.setdefault(_NOTES, {})
    notes.setdefault(topic, set()).update(names)


def guards_of(tx: Tx) -> Guards:
    """Return the guards of a write transaction's store."""
    guards: Guards = tx.info[_GUARDS]
    return guards


class Store:
    """A database and its transactions, shared by all threads of a process."""

    def __init__(self, backend: Backend, engines: Engines, guards: Guards | None = None) -> None:
        self.backend = backend
        self.engines = engines
        self._guards = guards or Guards()
        self._trouble: Trouble | None = None
        self.written_at_s = time.perf_counter()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with the notes of each commit, in the writing thread.

        ``listener`` must not raise an error. Otherwise, the commit would seem to have failed, and
        would be repeated.
        """
        self._listeners.append(listener)

    @property
    def trouble(self) -> str | None:
        """The database problem that made the last write fail, or ``None``."""
        return None if self._trouble is None else self._trouble.value

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A context manager that opens a transaction, which reads one consistent snapshot.

        Raises :class:`Busy` if no connection becomes free in time, and :class:`Unavailable` if the
        database does not answer.
        """
        try:
            with self.engines.reading.connect() as tx, self._leaving(tx), tx.begin():
                self.backend.begin_reading(tx)
                yield tx
        except sa.exc.SQLAlchemyError as error:
            refusal = _refusal(error, self.backend.trouble(error))
            if refusal is None:
                raise
            raise refusal from error

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A context manager that opens a transaction, and commits it unless the block raises.

        Raises :class:`Unavailable` if the database cannot write at present. :class:`Unreachable`
        and :class:`Collided` may be retried at once. :class:`Busy` means a timeout while waiting
        for other writers. After :class:`Doubtful`, the write may have been committed. After any
        other error, nothing was committed.
        """
        notes: dict[str, set[str]] = {}
        is_committing = False
        try:
            with self.engines.writing.connect() as tx, self._leaving(tx), tx.begin():
                # Pooled connections keep the notes of their last transaction.
                tx.info.update({_NOTES: notes, _GUARDS: self._guards})
                self.backend.begin_writing(tx, takes_turn=self._guards.turns)
                yield tx
                is_committing = True
        except sa.exc.SQLAlchemyError as error:
            refusal = self._failed(error, is_committing)
            if isinstance(refusal, Doubtful):
                # The write may have been committed.
                self._notify(notes)
            if refusal is None:
                raise
            raise refusal from error
        self._trouble = None
        self.written_at_s = time.perf_counter()
        self._notify(notes)

    @contextmanager
    def _leaving(self, tx: Tx) -> Iterator[None]:
        """A context manager that discards a connection if an error makes it unusable."""
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            if self.backend.trouble(error) in LEAVES_CONNECTION and not tx.invalidated:
                tx.invalidate(error)
            raise

    def _notify(self, notes: Mapping[str, Collection[str]]) -> None:
        for topic, names in notes.items():
            for listener in self._listeners:
                listener(topic, frozenset(names))

    def _failed(self, error: sa.exc.SQLAlchemyError, is_committing: bool) -> Unavailable | None:
        trouble = self.backend.trouble(error)
        if trouble is not None and trouble not in OF_OTHERS:
            self._trouble = trouble
        if is_committing and _leaves_open(error, trouble):
            return Doubtful(
                "The database did not confirm the commit. Check the result before you retry."
            )
        return _refusal(error, trouble)

    def dispose(self) -> None:
        """Close all connections, at the end of the process."""
        self.engines.dispose()


OF_OTHERS = frozenset({Trouble.COLLISION, Trouble.WAITED})
"""Problems that are caused by other transactions, and not by the database itself."""
DECIDED = frozenset({*OF_OTHERS, Trouble.FULL, Trouble.READ_ONLY})
"""If a commit fails with one of these problems, nothing was committed."""
ANSWERS = (sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.DataError)


def _leaves_open(error: sa.exc.SQLAlchemyError, trouble: Trouble | None) -> bool:
    """Return whether the commit may have succeeded, although it raised this error."""
    return trouble not in DECIDED and not isinstance(error, ANSWERS)


REFUSALS: Mapping[Trouble, tuple[type[Unavailable], str]] = {
    Trouble.COLLISION: (Collided, "The database is busy with other writes."),
    Trouble.WAITED: (Busy, "The database is busy with other writes."),
    Trouble.NOT_LET_IN: (NotLetIn, "The database rejected the service's login."),
    **dict.fromkeys(
        LEAVES_CONNECTION, (Unreachable, "The database does not answer at the moment.")
    ),
}


def _refusal(error: sa.exc.SQLAlchemyError, trouble: Trouble | None) -> Unavailable | None:
    """Return the error to raise, or ``None`` to raise the driver's error."""
    # The driver's text is only logged, since it can contain SQL.
    if isinstance(error, sa.exc.TimeoutError):
        return Busy("No database connection became free in time.")
    if trouble is not None and trouble in REFUSALS:
        kind, message = REFUSALS[trouble]
        return kind(message)
    if trouble is not None or isinstance(error, sa.exc.OperationalError):
        return Unavailable("The database could not execute the request.")
    return None


def ping(tx: Tx) -> None:
    """Check that the database answers."""
    driver.execute(tx, "SELECT 1").fetchall()


@contextmanager
def step(tx: Tx, name: str = "step") -> Iterator[None]:
    """A context manager whose block can be rolled back without the rest of the transaction.

    An exception rolls back only the block. A database error ends the whole transaction, so no code
    within the transaction may catch it. A step within a step needs another ``name``, because
    MariaDB forgets a savepoint when its name is used again.
    """
    driver.execute(tx, f"SAVEPOINT {name}")
    # Read ``info`` once, because it raises an error after the connection is lost.
    facts = tx.info
    notes = facts.get(_NOTES, {})
    of_step: dict[str, set[str]] = {}
    facts[_NOTES] = of_step
    try:
        yield
    except sa.exc.SQLAlchemyError:
        # After a deadlock, MariaDB has rolled back the whole transaction and its savepoints.
        raise
    except Exception:
        # An invalidated connection has nothing to roll back.
        if not tx.invalidated:
            driver.execute(tx, f"ROLLBACK TO SAVEPOINT {name}")
            driver.execute(tx, f"RELEASE SAVEPOINT {name}")
        raise
    finally:
        facts[_NOTES] = notes
    for topic, names in of_step.items():
        note(tx, topic, names)
    driver.execute(tx, f"RELEASE SAVEPOINT {name}")
