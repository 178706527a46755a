"""A database as a command uses it: a transaction at a time, without the threads of a service.

Always true: what ``write`` returned from without an error is on the disk.
"""

from __future__ import annotations

from typing import TypeVar

from innkeeper.engine.commands import Work
from innkeeper.store.transactions import Store

T = TypeVar("T")


class Database:
    """What commands and the start of a service hold; ``store`` is for the engine alone."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction that only reads."""
        with self.store.read() as tx:
            return work(tx)

    def write(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction that is undone if it raises."""
        with self.store.write() as tx:
            return work(tx)
