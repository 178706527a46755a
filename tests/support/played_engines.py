"""The part of an engine that only runs transactions, for tests without a writer thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.store.transactions import Store, Tx

T = TypeVar("T")


class PlayedEngine:
    """Runs transactions over a store at once."""

    store: Store

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction."""
        with self.store.read() as tx:
            return work(tx)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction that writes."""
        with self.store.write() as tx:
            return work(tx)
