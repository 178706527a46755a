"""Cache invalidation between processes: a counter per topic, incremented with each write.

Always true: the counter changes in the transaction of the write. So a process that polls the
counter after the write was acknowledged sees a new number. The process then drops its cache.
"""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa

from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.ordering import invalidations
from innkeeper.store.transactions import Store, Tx

IDENTITY = "identity"
"""The topic of all data that decides what a token or a credential permits."""

_COUNT = (
    invalidations.update()
    .where(invalidations.c.topic == sa.bindparam("named"))
    .values(number=invalidations.c.number + 1)
)
FAR = 2**40
"""A number that no counter ever reaches."""
_NUMBER = Prepared(
    sa.select(invalidations.c.number).where(invalidations.c.topic == sa.bindparam("named"))
)


def invalidate(tx: Tx, topic: str) -> None:
    """Invalidate the caches of a topic in all processes."""
    tx.execute(_COUNT, {"named": topic})


def number(tx: Tx, topic: str) -> int:
    """Return the counter of a topic."""
    found: int = _NUMBER.rows(tx, {"named": topic})[0][0]
    return found


class Listener:
    """Polls the counter of one topic. Only one thread may use a listener.

    A listener keeps a connection in autocommit mode, so a poll takes one round trip instead of
    four.

    Always true: after a lost connection, :meth:`number` returns no value that it returned before
    the loss. The database may have been restored, or may lack the last commits. Then the counter in
    the database reaches some values for a second time. So the listener adds ``FAR`` to the counter
    for each lost connection.
    """

    def __init__(self, store: Store, topic: str) -> None:
        self._store = store
        self._topic = topic
        self._connection: sa.Connection | None = None
        self._ahead = 0

    def number(self) -> int:
        """Return a number that changes after each write, and whenever a write may have been missed.

        Raises the errors of :meth:`Store.read`.
        """
        if self._connection is not None:
            try:
                return self._ahead + number(self._connection, self._topic)
            except sa.exc.SQLAlchemyError:
                # The server may have restarted. A read on a new connection shows whether the server
                # answers.
                self.close()
                self._ahead += FAR
        with self._store.read() as tx:
            found = number(tx, self._topic)
        # If no connection is free, the next poll reads through the pool again.
        with suppress(sa.exc.SQLAlchemyError):
            self._connection = self._store.engines.reading.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            )
        return self._ahead + found

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
