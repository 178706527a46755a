"""The one thread that searches the columns of all providers.

Always true: a search sees every write that was acknowledged before it was asked for; only this
thread touches the table.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.ids import IdSource
from innkeeper.store.transactions import Store, Tx

WAITING_MAX = 1_000
"""Searches that may wait. More would not be answered before their clients give up."""

T = TypeVar("T")


class Desk(Protocol):
    """What the thread needs of the placement room."""

    def load(self, tx: Tx) -> None:
        """Read all providers."""

    def find(self, tx: Tx, query: CandidateQuery, seed: int) -> FoundCandidates:
        """Search for candidates."""


class SearchThread:
    """See :class:`innkeeper.entrypoints.api.site.Candidates`."""

    def __init__(self, store: Store, desk: Desk, ids: IdSource) -> None:
        self._store = store
        self._desk = desk
        self._ids = ids
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="searching")
        self._waiting = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to read the providers; the first search waits for that, nobody else does."""
        self._pool.submit(self._read, self._desk.load)

    async def find(self, query: CandidateQuery) -> FoundCandidates:
        """Search; see :meth:`innkeeper.systems.placement.candidates.CandidateDesk.find`."""
        with self._lock:
            if self._waiting >= WAITING_MAX:
                raise Unavailable("Too many searches wait already.")
            self._waiting += 1
        try:
            seed = self._ids.seed()
            return await asyncio.get_running_loop().run_in_executor(
                self._pool, self._read, lambda tx: self._desk.find(tx, query, seed)
            )
        finally:
            with self._lock:
                self._waiting -= 1

    def _read(self, work: Callable[[Tx], T]) -> T:
        with self._store.read() as tx:
            return work(tx)

    def stop(self) -> None:
        """Let the running search end."""
        self._pool.shutdown(wait=True, cancel_futures=True)
