"""A database as commands use it: one transaction at a time, without a service's threads.

Always true: what ``write`` has returned from is on the disk.
"""

from __future__ import annotations

from typing import TypeVar

from innkeeper.engine.commands import Work
from innkeeper.store.transactions import Store

T = TypeVar("T")


class Database:
    """For commands and the start of a service; only the engine uses ``store``."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction that only reads."""
        with self.store.read() as tx:
            return work(tx)

    def write(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction that is rolled back if it raises."""
        with self.store.write() as tx:
            return work(tx)
