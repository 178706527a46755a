"""Reads outside the event loop, in a few threads.

Always true: the number of waiting reads is limited, so that each read is answered before its client
gives up. A read that loses its connection is retried a few times, because it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from innkeeper.domain.errors import Unavailable
from innkeeper.engine.retry import PASSING, Repeats
from innkeeper.store.transactions import Store, Tx

T = TypeVar("T")
WAITING_MAX = 2_000
"""The maximum number of waiting and running reads. Eight threads execute them in a few seconds."""


class ReaderThreads:
    """Threads that read, so that the event loop never waits for the database."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="reader")
        self._waiting = 0

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a new read-only transaction."""
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many requests are waiting already. Retry later.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)
        finally:
            self._waiting -= 1

    def _read(self, work: Callable[[Tx], T]) -> T:
        repeats = Repeats()
        found: list[T] = []
        while not found:
            try:
                with self._store.read() as tx:
                    found.append(work(tx))
            except PASSING.errors:
                if not repeats.wait():
                    raise
        return found[0]

    def stop(self) -> None:
        """Wait for running reads."""
        self._pool.shutdown(wait=True)
