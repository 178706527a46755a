"""The one thread that searches the columns of all providers.

Always true: a search sees every write that was acknowledged before it began; only this thread
touches the table; no search runs, or delays the next one, much longer than ``SEARCH_S``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import structlog

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.ids import IdSource
from innkeeper.snapshot.providers import ProviderTable
from innkeeper.store.transactions import Store, Tx

LOG = structlog.get_logger("innkeeper.placement")
WAITING_MAX = 1_000
"""Searches that may wait. More would not be answered before their clients give up."""
WAIT_S = 30.0
"""A search that waited longer is refused: its client has given up, or is about to."""
SEARCH_S = 10.0
"""A search then ends with what it has found. Ordinary ones take milliseconds."""

T = TypeVar("T")
GoesOn = Callable[[], bool]


class Searcher(Protocol):
    """What the thread needs of the placement room."""

    def load(self, tx: Tx) -> None:
        """Read all providers."""

    def follow(self, tx: Tx, query: CandidateQuery) -> ProviderTable:
        """The table as ``tx`` sees it; raises :class:`Invalid` for a wrong query."""

    def find(
        self, table: ProviderTable, query: CandidateQuery, seed: int, goes_on: GoesOn
    ) -> FoundCandidates:
        """Search for candidates while ``goes_on`` returns true."""


class SearchThread:
    """The thread and its waiting searches."""

    def __init__(self, store: Store, searcher: Searcher, ids: IdSource) -> None:
        self._store = store
        self._searcher = searcher
        self._ids = ids
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="searching")
        self._waiting = 0
        self._is_stopping = False

    def start(self) -> None:
        """Start reading the providers; only the first search waits for that."""
        self._pool.submit(self._load).add_done_callback(_log_failure)

    async def find(
        self, query: CandidateQuery, render: Callable[[FoundCandidates], T]
    ) -> tuple[FoundCandidates, T]:
        """Search, and ``render`` the result in the same thread, since it may be long."""
        if self._is_stopping:
            raise Unavailable("The service is stopping.")
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many searches wait already.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._pool, self._search, query, render, time.perf_counter()
            )
        except asyncio.CancelledError:
            # The client disconnected, or the thread ended before the search began.
            if self._is_stopping:
                raise Unavailable("The service is stopping.") from None
            raise
        finally:
            self._waiting -= 1

    def _search(
        self, query: CandidateQuery, render: Callable[[FoundCandidates], T], submitted_s: float
    ) -> tuple[FoundCandidates, T]:
        begun_s = time.perf_counter()
        if begun_s - submitted_s > WAIT_S:
            raise Unavailable("Too many searches were waiting before this one.")
        until_s = begun_s + SEARCH_S
        # The transaction ends before the search: an open one delays checkpoints of the WAL.
        with self._store.read() as tx:
            table = self._searcher.follow(tx, query)
        found = self._searcher.find(
            table,
            query,
            self._ids.seed(),
            lambda: not self._is_stopping and time.perf_counter() < until_s,
        )
        return found, render(found)

    def _load(self) -> None:
        with self._store.read() as tx:
            self._searcher.load(tx)

    def stop(self) -> None:
        """End the running search with what it has found, and start no other."""
        self._is_stopping = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def _log_failure(loading: Future[None]) -> None:
    error = None if loading.cancelled() else loading.exception()
    if error is not None:
        # The first search reads again, and its client sees the error if that fails too.
        LOG.error("providers_unread", exc_info=error)
