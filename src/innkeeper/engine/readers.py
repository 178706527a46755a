"""Reads outside the event loop, in a few threads.

Always true: the number of waiting reads is limited, so that each read is answered before its client
gives up. A read that loses its connection is retried a few times, because it changes nothing. A
read starts after the call that it serves. A shared read starts after all of its calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from innkeeper.domain.errors import Unavailable
from innkeeper.engine.commands import ReadTogether
from innkeeper.engine.repeats import Repeats
from innkeeper.engine.retry import PASSING
from innkeeper.store.transactions import Store, Tx

T = TypeVar("T")
R = TypeVar("R")
AnyRead = ReadTogether[object, object]
SharingCall = tuple[object, asyncio.Future[object]]
"""An item of a call, and the future that gets the answer."""
WAITING_MAX = 2_000
"""The maximum number of waiting and running reads. Eight threads execute them in a few seconds."""


TOGETHER_MAX = 1_000
"""The maximum number of items of one shared read, so that no read takes long."""


class ReaderThreads:
    """Threads that read, so that the event loop never waits for the database."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="reader")
        self._waiting = 0
        self._calls: dict[AnyRead, list[SharingCall]] = {}
        self._tasks: dict[AnyRead, asyncio.Task[None]] = {}

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a new read-only transaction."""
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many requests are waiting already. Retry later.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)
        finally:
            self._waiting -= 1

    async def run_together(self, work: ReadTogether[T, R], item: T) -> R:
        """Run ``work`` for this item, together with the items of other waiting calls.

        For each ``work``, one read runs at a time. Calls that arrive during a read share the next
        one. Raises the refusal of the item.
        """
        # All calls that share a read have items and answers of the same types.
        key = cast("AnyRead", work)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._calls.setdefault(key, []).append((item, future))
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._serve(key))
        return cast("R", await future)

    async def _serve(self, work: AnyRead) -> None:
        try:
            while calls := self._calls.pop(work, []):
                if len(calls) > TOGETHER_MAX:
                    self._calls[work] = calls[TOGETHER_MAX:]
                    del calls[TOGETHER_MAX:]
                _resolve(calls, await self._answers(work, [item for item, _ in calls]))
        finally:
            del self._tasks[work]

    async def _answers(self, work: AnyRead, items: list[object]) -> Sequence[object]:
        read = self.run(lambda tx: work(tx, items))
        (answers,) = await asyncio.gather(read, return_exceptions=True)
        # If the read fails, each of the calls gets the error.
        return [answers] * len(items) if isinstance(answers, BaseException) else answers

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


def _resolve(calls: Sequence[SharingCall], answers: Sequence[object]) -> None:
    for (_, future), answer in zip(calls, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
