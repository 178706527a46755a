"""What a database must be able to do to be a store."""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa

WRITES = "innkeeper_writes"
"""Execution option of a connection whose transactions are going to write."""


class Backend(Protocol):
    """One kind of database. It takes transactions that write one after the other.

    The first one that takes them side by side has more to do: see
    :mod:`innkeeper.store.changes` and :mod:`innkeeper.store.claims`.
    """

    name: str

    def engine(self, url: str, *, readers_max: int, busy_timeout_s: float) -> sa.Engine:
        """Make the pool of connections; every one of them is durable and isolated.

        No error of theirs quotes the parameters of a statement.
        """

    def is_conflict(self, error: Exception) -> bool:
        """Whether a driver's error means that another transaction was in the way.

        The same work may then be tried again.
        """
