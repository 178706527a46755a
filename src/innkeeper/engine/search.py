"""The thread that searches the columns of all providers for allocation candidates.

Always true: a search sees every write that was acknowledged before the search started. Only this
thread touches the table of providers. A search stops after about ``SEARCH_S`` seconds.
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
"""The maximum number of waiting searches. If more searches waited, their clients would give up."""
WAIT_S = 30.0
"""If a search has waited longer than this, it is refused, because its client is about to give
up."""
SEARCH_S = 10.0
"""After this time, a search ends with what it has found. An ordinary search takes milliseconds."""

T = TypeVar("T")
GoesOn = Callable[[], bool]


class Searcher(Protocol):
    """The functions of the placement system that the search thread uses."""

    def load(self, tx: Tx) -> None:
        """Read all providers."""

    def follow(self, tx: Tx, query: CandidateQuery) -> ProviderTable:
        """Return the table as ``tx`` sees it. Raises :class:`Invalid` for an invalid query."""

    def find(
        self, table: ProviderTable, query: CandidateQuery, seed: int, goes_on: GoesOn
    ) -> FoundCandidates:
        """Search for candidates while ``goes_on`` returns true."""


class SearchThread:
    """The search thread and its waiting searches."""

    def __init__(self, store: Store, searcher: Searcher, ids: IdSource) -> None:
        self._store = store
        self._searcher = searcher
        self._ids = ids
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="searching")
        self._waiting = 0
        self._is_stopping = False

    def start(self) -> None:
        """Start reading the providers; the first searches wait until they are read."""
        self._pool.submit(self._load).add_done_callback(_log_failure)

    async def find(
        self, query: CandidateQuery, render: Callable[[FoundCandidates], T]
    ) -> tuple[FoundCandidates, T]:
        """Search and ``render`` in the search thread, because rendering can take long."""
        if self._is_stopping:
            raise Unavailable("The service is stopping.")
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many searches are waiting already. Retry later.")
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
            raise Unavailable("The search waited too long for earlier searches. Retry later.")
        until_s = begun_s + SEARCH_S
        # The transaction ends before the search, because an open transaction delays checkpoints of
        # the WAL.
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
        """End the running search early, with what it has found. Refuse waiting searches."""
        self._is_stopping = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def _log_failure(loading: Future[None]) -> None:
    error = None if loading.cancelled() else loading.exception()
    if error is not None:
        # The first search reads the providers again. If that fails too, its client gets the error.
        LOG.error("providers_unread", exc_info=error)
