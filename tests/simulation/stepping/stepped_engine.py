"""The engine of a service without threads: each commit and each read is one step of the event loop.

Always true: commits are carried out by the program's own batches, and are all or nothing. The
process of the service can die between any two steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import IdSource
from innkeeper.engine.batches import PendingCommand, carry_out
from innkeeper.engine.commands import Command, ReadTogether, Work
from innkeeper.engine.engine import Engine
from innkeeper.engine.writer import BATCH_MAX, DEFERRED_S, Writer
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.placement.candidates import CandidateSearcher

T = TypeVar("T")
R = TypeVar("R")
Pause = Callable[[], Awaitable[None]]
"""Lets other tasks run for a while. In a dead process, it never returns."""
Spawn = Callable[[Coroutine[Any, Any, None]], object]
"""Runs a task of the service's process."""


class SteppedWriter(Writer):
    """Commits waiting commands as the writer thread does, in a task."""

    def __init__(self, store: Store, executor: BootExecutor, pause: Pause, spawn: Spawn) -> None:
        super().__init__(store, executor)
        self._carried = store, executor
        self._pause = pause
        self._spawn = spawn
        self._commands: list[PendingCommand] = []
        self._later: list[PendingCommand] = []
        self._is_running = False

    def defer(self, command: Command[object]) -> None:
        self._later.append(PendingCommand(command))
        self._spawn(self._end_wait_later())

    async def _end_wait_later(self) -> None:
        await asyncio.sleep(DEFERRED_S)
        await self._pause()
        if self._later:
            self._begin()

    def _enter(self, command: Command[object]) -> asyncio.Future[object]:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._commands.append(PendingCommand(command, future))
        self._begin()
        return future

    def _begin(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._spawn(self._commit_all())

    async def _commit_all(self) -> None:
        store, executor = self._carried
        while self._commands or self._later:
            await self._pause()
            batch, self._commands = self._commands[:BATCH_MAX], self._commands[BATCH_MAX:]
            if not batch or any(each.command.is_writing for each in batch):
                batch, self._later = [*self._later, *batch], []
            for each, outcome in zip(batch, carry_out(store, executor, batch), strict=True):
                if each.future is None or each.future.done():
                    continue
                if isinstance(outcome, Exception):
                    each.future.set_exception(outcome)
                else:
                    each.future.set_result(outcome)
        self._is_running = False


class SteppedEngine(Engine):
    """An engine whose reads and commits are steps. It is never started."""

    def __init__(
        self,
        store: Store,
        executor: BootExecutor,
        candidates: CandidateSearcher,
        ids: IdSource,
        reader_threads: int,
        *,
        pause: Pause,
        spawn: Spawn,
    ) -> None:
        super().__init__(store, executor, candidates, ids, reader_threads)
        self._pause = pause
        self.writer = SteppedWriter(store, executor, pause, spawn)

    async def read(self, work: Work[T]) -> T:
        await self._pause()
        with self._store.read() as tx:
            return work(tx)

    async def read_together(self, work: ReadTogether[T, R], item: T) -> R:
        (answer,) = await self.read(lambda tx: work(tx, [item]))
        if isinstance(answer, Refusal):
            raise answer
        return answer
