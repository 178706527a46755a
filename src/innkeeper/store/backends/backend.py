"""What a database must be able to do to be a store, and how one is chosen.

Tests ask for capabilities, never for brands: what a backend cannot do it says here.
"""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa

WRITES = "innkeeper_writes"
"""Execution option of a connection whose transactions are going to write."""


class Backend(Protocol):
    """One kind of database.

    ``writers_max`` says how many processes may write at once: 1 where the database takes them
    one after the other anyway. ``is_conflict`` tells whether a driver's error means that
    another transaction was in the way, so that the same work may be tried again.
    """

    name: str
    writers_max: int

    def engine(self, url: str, *, readers_max: int, busy_timeout_s: float) -> sa.Engine:
        """Make the pool of connections; every one of them is durable and isolated.

        No error of theirs quotes the parameters of a statement.
        """

    def is_conflict(self, error: Exception) -> bool:
        """Whether trying the transaction again can help."""
