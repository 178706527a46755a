"""Reading off the event loop: a few threads, each with its own view of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from innkeeper.store.transactions import Store, Tx

T = TypeVar("T")


class ReaderThreads:
    """See :class:`innkeeper.entrypoints.api.site.Readers`."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="reader")

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a fresh reading transaction."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def _read(self, work: Callable[[Tx], T]) -> T:
        with self._store.read() as tx:
            return work(tx)

    def stop(self) -> None:
        """Let running reads end."""
        self._pool.shutdown(wait=True)
