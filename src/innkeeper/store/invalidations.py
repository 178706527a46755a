"""Numbers that are counted up when something was written that a process may remember otherwise.

Always true: the number moves in the transaction of the write itself. So whoever asks for it
after the write was acknowledged finds another number than before, and forgets.
"""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa

from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.ordering import invalidations
from innkeeper.store.transactions import Store, Tx

IDENTITY = "identity"
"""The topic of all that a token or a credential stands for."""

_COUNT = (
    invalidations.update()
    .where(invalidations.c.topic == sa.bindparam("named"))
    .values(number=invalidations.c.number + 1)
)
FAR = 2**40
"""More news than there ever will be."""
_NUMBER = Prepared(
    sa.select(invalidations.c.number).where(invalidations.c.topic == sa.bindparam("named"))
)


def tell(tx: Tx, topic: str) -> None:
    """Have everybody forget what is remembered of a topic."""
    tx.execute(_COUNT, {"named": topic})


def number(tx: Tx, topic: str) -> int:
    """How often there was news of a topic."""
    found: int = _NUMBER.rows(tx, {"named": topic})[0][0]
    return found


class Listener:
    """Asks for the number of one topic again and again; used by one thread.

    It keeps a connection, and asks without a transaction around the question: that is one way
    to the database and back in place of four.

    Always true: behind a connection that was lost, no number is one that was given before. What
    answers there may have been brought back from a copy, or lack the last commits; it has
    counted less then, and comes to the same number by other news.
    """

    def __init__(self, store: Store, topic: str) -> None:
        self._store = store
        self._topic = topic
        self._connection: sa.Connection | None = None
        self._ahead = 0

    def number(self) -> int:
        """Another number than before, if there was news or may have been.

        Refused as any other read where the database does not answer.
        """
        if self._connection is not None:
            try:
                return self._ahead + number(self._connection, self._topic)
            except sa.exc.SQLAlchemyError:
                # Its server was restarted, say. Whatever it was, the long way tells.
                self.close()
                self._ahead += FAR
        with self._store.read() as tx:
            found = number(tx, self._topic)
        # Where there is no connection to spare, the next question goes the long way too.
        with suppress(sa.exc.SQLAlchemyError):
            self._connection = self._store.engines.reading.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            )
        return self._ahead + found

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
