"""The engine of one process: the threads that read, write, decide and search.

Always true: a read or a search sees every write that was acknowledged before it started. The
engine does not know its callers or their APIs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import IdSource, ServerId
from innkeeper.engine.commands import (
    ALLOCATIONS,
    Admit,
    Boot,
    BootEntries,
    Decide,
    DecideTogether,
    Deciding,
    DecidingTogether,
    Explain,
    ReadTogether,
    Together,
    Work,
    Write,
    WriteTogether,
)
from innkeeper.engine.leases import webhook as lease_webhook
from innkeeper.engine.order_watch import OrderWatch
from innkeeper.engine.readers import ReaderThreads
from innkeeper.engine.search import SearchThread
from innkeeper.engine.wakeups import Wakeups
from innkeeper.engine.writer import Writer
from innkeeper.store.transactions import Store, ping
from innkeeper.systems.compute.boot.dry_run import Explained, Question
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.placement.candidates import CandidateSearcher

T = TypeVar("T")
R = TypeVar("R")


class Engine:
    """The engine of a process, created by ``wiring``; the APIs and the periodic tasks share it.

    ``wakeups`` wakes requests that wait for a commit.
    """

    def __init__(
        self,
        store: Store,
        executor: BootExecutor,
        candidates: CandidateSearcher,
        ids: IdSource,
        reader_threads: int,
    ) -> None:
        self.writer = Writer(store, executor)
        self.wakeups = Wakeups()
        self._store = store
        self._executor = executor
        self._readers = ReaderThreads(store, reader_threads)
        self._search = SearchThread(store, candidates, ids)
        self._orders = OrderWatch(store, self.wakeups)
        self._is_started = False
        store.listen(self.wakeups.wake)
        store.listen(lease_webhook.listener(lease_webhook.LOG))

    def load(self) -> None:
        """Load the host table. The call can be repeated if the database was unreachable."""
        with self._store.read() as tx:
            self._executor.load(tx)

    def start(self, *, watches_orders: bool) -> None:
        """Start the threads; the host table must be loaded.

        With ``watches_orders``, commits of other processes also wake the agents that wait for
        orders here.
        """
        self._is_started = True
        self.writer.start()
        self._search.start()
        if watches_orders:
            self._orders.start()

    def stop(self, timeout_s: float) -> None:
        """Finish the work in progress and refuse new work."""
        self._orders.stop()
        if self._is_started:
            self.writer.stop(timeout_s)
        self._readers.stop()
        self._search.stop()

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` in a read-only transaction, outside the event loop."""
        return await self._readers.run(work)

    async def read_together(self, work: ReadTogether[T, R], item: T) -> R:
        """Run ``work`` like :meth:`read`, but once for all waiting calls, with all their items.

        Returns the answer to ``item``, or raises its refusal.
        """
        return await self._readers.run_together(work, item)

    async def ping(self) -> None:
        """Check that the database answers."""
        await self._readers.run(ping)

    async def write(self, work: Work[T], lines: int = 1) -> T:
        """Run ``work`` in the next group commit. Raises the refusal of ``work``.

        ``lines`` is the approximate number of rows that ``work`` writes. It counts towards the
        batch's limit.
        """
        return await self.writer.submit(Write(work, lines))

    async def write_together(
        self, work: Together[T, R], item: T, lines: int = 1, kind: str = ALLOCATIONS
    ) -> R:
        """Run ``work`` in the next group commit, once for all calls with the same ``work``.

        Returns the answer to ``item``, or raises its refusal. ``kind`` is for metrics.
        """
        return await self.writer.submit(WriteTogether(work, item, lines, kind))

    def write_later(self, work: Together[T, None], item: T, lines: int = 1) -> None:
        """Run ``work`` as :meth:`write_together` does, in the commit of the next write.

        All later writes of this process see the effect of ``work``. If the process dies before that
        commit, the work is not done. So the caller must make sure that a later repair reaches the
        same result.
        """
        self.writer.defer(WriteTogether(work, item, lines))

    def write_with_next(self, work: Together[T, R], item: T, lines: int = 1) -> asyncio.Future[R]:
        """Run ``work`` like :meth:`write_later`, and return a future for its answer.

        See :meth:`Writer.submit_with_next`.
        """
        return self.writer.submit_with_next(WriteTogether(work, item, lines))

    def hasten(self) -> None:
        """Commit the waiting work of :meth:`write_later` and :meth:`write_with_next` now."""
        self.writer.hasten()

    async def boot(self, request: BootRequest) -> Booted:
        """Choose hosts for a boot request and claim them, in one batch with other boots."""
        return await self.writer.submit(Boot(request))

    async def boot_entries(
        self, request: BootRequest, admit: Admit
    ) -> Mapping[ServerId, Booted | Refusal]:
        """Boot servers for a zone parent, which has sent an entry of a build plan for each server.

        The servers are booted in one batch with other boots.

        ``admit`` is run first, in the same transaction; see :class:`BootEntries`. Raises the
        refusal of ``admit``.
        """
        return await self.writer.submit(BootEntries(request, admit))

    async def decide(self, work: Deciding[T], now: datetime, lines: int = 1) -> T:
        """Run ``work`` like :meth:`write`, but also pass a decision context to it.

        The context has the host table as the transaction of ``work`` sees it. ``work`` must not
        change the host table. It must itself write its claims to the store.
        """
        return await self.writer.submit(Decide(work, now, lines=lines))

    async def decide_together(self, work: DecidingTogether[T, R], item: T, now: datetime) -> R:
        """Run ``work`` like :meth:`decide`, but once for all calls with the same ``work``."""
        return await self.writer.submit(DecideTogether(work, item, now))

    async def plan(self, work: Deciding[T], now: datetime) -> T:
        """Run ``work`` like :meth:`decide`; ``work`` must not write anything."""
        return await self.writer.submit(Decide(work, now, is_plan=True))

    async def explain(self, question: Question) -> Explained:
        """Choose hosts like :meth:`boot`, but claim nothing, and return an explanation."""
        return await self.writer.submit(Explain(question))

    async def find(
        self, query: CandidateQuery, render: Callable[[FoundCandidates], T]
    ) -> tuple[FoundCandidates, T]:
        """Search the columns of all providers for allocation candidates.

        Returns the candidates and what ``render`` returns for them; ``render`` runs outside the
        event loop. Raises :class:`Invalid` for an unknown resource class or trait.
        """
        return await self._search.find(query, render)
