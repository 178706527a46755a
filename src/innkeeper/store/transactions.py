"""Begin and commit: the only way to a connection.

Always true: a write is either committed whole, or leaves no trace; what ``Store.write``
returned from without an error is on the disk.

May be false: that a commit which raised :class:`Doubtful` did *not* happen. The connection died
between the commit and its answer; that is why every claim carries its consumer's id, and a
retry finds its own rows. Whoever looks in a transaction that writes waits for the lost one to
end, if it has not yet, and so sees the truth. After every other error nothing happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa

from innkeeper.domain.errors import Busy, Collided, Doubtful, NotLetIn, Unavailable, Unreachable
from innkeeper.store.backends.backend import LEAVES_CONNECTION, Backend, Engines, Trouble
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

    def __init__(self, backend: Backend, engines: Engines, guards: Guards | None = None) -> None:
        self.backend = backend
        self.engines = engines
        self._guards = guards or Guards()
        self._trouble: Trouble | None = None
        self.written_at_s = time.perf_counter()
        self._writing = engines.writing
        if not self._guards.turns:
            self._writing = engines.writing.execution_options(**{WITHOUT_TURN: True})
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Have ``listener`` told, in the writing thread, what each commit has noted."""
        self._listeners.append(listener)

    @property
    def trouble(self) -> str | None:
        """What kept the last transaction from being written, if it was the database."""
        return None if self._trouble is None else self._trouble.value

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """One moment of the store, seen unchanged until the block ends.

        Raises :class:`Busy` where more read at the same time than there are connections for,
        and :class:`Unavailable` where the database does not answer.
        """
        try:
            with self.engines.reading.connect() as tx, self._leaving(tx), tx.begin():
                yield tx
        except sa.exc.SQLAlchemyError as error:
            refusal = _refusal(error, self.backend.trouble(error))
            if refusal is None:
                raise
            raise refusal from error

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that is committed at the block's end, or rolled back on an error.

        Raises :class:`Unavailable` where the database does not take the write at present:
        :class:`Unreachable` and :class:`Collided` where the same may be tried again at once,
        :class:`Busy` after waiting for other writers, and :class:`Doubtful` where nobody
        knows whether the commit happened. In all other cases it did not.
        """
        notes: dict[str, set[str]] = {}
        is_committing = False
        try:
            with self._writing.connect() as tx, self._leaving(tx):
                # Connections are used again; what the last transaction noted is not ours.
                tx.info.update({_NOTES: notes, _GUARDS: self._guards})
                with tx.begin():
                    yield tx
                    is_committing = True
        except sa.exc.SQLAlchemyError as error:
            refusal = self._failed(error, is_committing)
            if isinstance(refusal, Doubtful):
                # If it happened nobody else will tell of it.
                self._tell(notes)
            if refusal is None:
                raise
            raise refusal from error
        self._trouble = None
        self.written_at_s = time.perf_counter()
        self._tell(notes)

    @contextmanager
    def _leaving(self, tx: Tx) -> Iterator[None]:
        """Have a connection that is of no use any more thrown away, and not pooled."""
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            if self.backend.trouble(error) in LEAVES_CONNECTION and not tx.invalidated:
                tx.invalidate(error)
            raise

    def _tell(self, notes: Mapping[str, Collection[str]]) -> None:
        for topic, names in notes.items():
            for listener in self._listeners:
                listener(topic, frozenset(names))

    def _failed(self, error: sa.exc.SQLAlchemyError, is_committing: bool) -> Unavailable | None:
        trouble = self.backend.trouble(error)
        if trouble is not None and trouble not in OF_OTHERS:
            self._trouble = trouble
        if is_committing and _leaves_open(error, trouble):
            return Doubtful(
                "The database did not say whether this was carried out. Look before trying again."
            )
        return _refusal(error, trouble)

    def dispose(self) -> None:
        """Close all connections; for the end of the process."""
        self.engines.dispose()


OF_OTHERS = frozenset({Trouble.COLLISION, Trouble.WAITED})
"""Says nothing about the database."""
DECIDED = frozenset({*OF_OTHERS, Trouble.FULL, Trouble.READ_ONLY})
"""A commit that ends like this did not happen."""
ANSWERS = (sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.DataError)


def _leaves_open(error: sa.exc.SQLAlchemyError, trouble: Trouble | None) -> bool:
    """Whether a commit that raised this may have happened."""
    return trouble not in DECIDED and not isinstance(error, ANSWERS)


REFUSALS: Mapping[Trouble, tuple[type[Unavailable], str]] = {
    Trouble.COLLISION: (Collided, "The database is busy with others' writes."),
    Trouble.WAITED: (Busy, "The database is busy with others' writes."),
    Trouble.NOT_LET_IN: (NotLetIn, "The database does not let this service in."),
    **dict.fromkeys(
        LEAVES_CONNECTION, (Unreachable, "The database does not answer at the moment.")
    ),
}


def _refusal(error: sa.exc.SQLAlchemyError, trouble: Trouble | None) -> Unavailable | None:
    """What the caller is told in place of an error; ``None`` leaves it as it is."""
    # The text of the driver stays in the log: it can hold SQL.
    if isinstance(error, sa.exc.TimeoutError):
        return Busy("No connection to the database came free in time.")
    if trouble is not None and trouble in REFUSALS:
        kind, told = REFUSALS[trouble]
        return kind(told)
    if trouble is not None or isinstance(error, sa.exc.OperationalError):
        return Unavailable("The database cannot do this at the moment.")
    return None


def greet(tx: Tx) -> None:
    """Have the database say anything at all."""
    tx.exec_driver_sql("SELECT 1")


@contextmanager
def step(tx: Tx) -> Iterator[None]:
    """One part of a shared transaction that stands or falls alone.

    A refusal inside undoes what this part wrote, and nothing else. An error of the database
    ends the whole transaction: it is for nobody within it to catch.
    """
    tx.exec_driver_sql("SAVEPOINT step")
    try:
        yield
    except sa.exc.SQLAlchemyError:
        # There may be nothing left to be undone: of a collision, MariaDB has ended the
        # transaction with all of its savepoints, and would be asked for one that it lacks.
        raise
    except Exception:
        # On a connection that was thrown away there is nothing left to be undone, either.
        if not tx.invalidated:
            tx.exec_driver_sql("ROLLBACK TO SAVEPOINT step")
            tx.exec_driver_sql("RELEASE SAVEPOINT step")
        raise
    tx.exec_driver_sql("RELEASE SAVEPOINT step")
