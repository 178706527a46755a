"""The database as the program's commands use it: one transaction at a time, in one thread.

Always true: when ``write`` returns, its changes are on the disk.
"""

from __future__ import annotations

from typing import TypeVar

from innkeeper.engine.commands import Work
from innkeeper.store.transactions import Store

T = TypeVar("T")


class Database:
    """The database for a command of the program, or for a starting service.

    Only the engine uses ``store``.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, work: Work[T]) -> T:
        """Run ``work`` in a read-only transaction."""
        with self.store.read() as tx:
            return work(tx)

    def write(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction that is rolled back if it raises."""
        with self.store.write() as tx:
            return work(tx)
