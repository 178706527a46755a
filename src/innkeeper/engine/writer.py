"""The writer thread, which alone decides and writes. It commits waiting commands as one batch.

Always true: a command is answered only after its commit. Each command succeeds or fails alone. If
nobody waits for a command any more when its turn comes, the command is dropped. No other thread
touches the host table, so no decision sees half a claim. There is one exception: while this thread
waits for a flush, :mod:`innkeeper.engine.planning_ahead` may use the table. Every accepted command
is answered, even if the thread itself ends.

:mod:`innkeeper.engine.batches` executes a batch, and handles database failures.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from contextvars import Context
from typing import TypeVar, cast

import structlog

from innkeeper.domain.errors import ClientLeft, Refusal, Unavailable
from innkeeper.engine import metrics
from innkeeper.engine.batches import PendingCommand, carry_out, count_the_rest
from innkeeper.engine.command_queue import CommandQueue
from innkeeper.engine.commands import Command, Write
from innkeeper.engine.executor import Executor
from innkeeper.engine.planning_ahead import PlannerThread
from innkeeper.store.transactions import Store, Tx

LOG = structlog.get_logger("innkeeper.decisions")
T = TypeVar("T")

BATCH_MAX = 256
"""The maximum size of a batch. In a larger batch, the first command would wait too long."""
LINES_MAX = 1_000
"""A batch of several commands writes at most about this many rows (of allocations and servers). So
a command waits for another batch no longer than for one large request. A boot of 1,000 servers
takes 0.15 s. A batch of one command may write thousands of rows."""
GATHER_MIN_S, GATHER_MAX_S = 0.003, 0.008
GATHER_SHARE = 1 / 8
"""After a batch of several commands, clients are about to send their next commands, so the writer
waits for one or two intervals. An interval takes this share of the time that the last batch took,
but at least ``GATHER_MIN_S`` and at most ``GATHER_MAX_S`` seconds.

The writer expects as many commands as the last batch answered, plus the commands that were waiting
after that batch. It stops waiting once all expected commands have come, or once an interval brings
no new command. There are at most two intervals. The check at the end of an interval takes the
interpreter lock from the threads that submit commands."""
FAILURES_MAX = 5
"""The service reports that it is not ready after this many consecutive failed batches."""
DEFERRED_S = 0.25
"""The maximum time for which a deferred command waits for the commit of another command. While
clients are active, the next commit usually comes earlier."""


class Writer:
    """Takes commands from any thread, executes them in batches, and answers them."""

    def __init__(self, store: Store, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self._waiting = CommandQueue()
        self._planner = PlannerThread(self._waiting, executor, BATCH_MAX, LINES_MAX)
        self._deferred: deque[PendingCommand] = deque()
        self._wakeup = threading.Event()
        # The thread is woken only once this many commands wait, because each wake-up takes the
        # interpreter lock from the threads that submit commands.
        self._wanted = 1
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)
        self._is_stopping = False
        self._expected = 0
        self._gather_s = GATHER_MIN_S
        self._has_ended = False
        self._failures = 0
        self._batches = 0
        self._is_at_work = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Execute the waiting commands, and end the thread. New commands are refused at once."""
        self._is_stopping = True
        self._wakeup.set()
        self._thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive() and not self._has_ended

    @property
    def is_failing(self) -> bool:
        """Whether the last ``FAILURES_MAX`` batches failed through no fault of their commands.

        Periodic tasks write too, so this turns false soon after the database recovers.
        """
        return self._failures >= FAILURES_MAX

    @property
    def progress(self) -> int | None:
        """The number of batches started so far; ``None`` if there is no work."""
        return self._batches if self._is_at_work or self._waiting else None

    @property
    def thread_id(self) -> int | None:
        """The thread's identifier, once it has started."""
        return self._thread.ident

    @property
    def waiting(self) -> Mapping[str, int]:
        """The number of waiting commands, by kind."""
        return self._waiting.by_kind

    def submit_and_wait(self, command: Command[T], timeout_s: float) -> T:
        """Call :meth:`submit` from a thread without an event loop, and block until the answer."""
        with closing(asyncio.new_event_loop()) as loop:
            return loop.run_until_complete(asyncio.wait_for(self.submit(command), timeout_s))

    def submit_all_and_wait(
        self, commands: Sequence[Command[T]], timeout_s: float
    ) -> list[T | BaseException]:
        """Submit several commands that share commits, and block until all are answered.

        If a command fails, its answer is the exception. Raises :class:`TimeoutError`.
        """

        async def submit_all() -> list[T | BaseException]:
            answers = asyncio.gather(*map(self.submit, commands), return_exceptions=True)
            return list(await asyncio.wait_for(answers, timeout_s))

        with closing(asyncio.new_event_loop()) as loop:
            return loop.run_until_complete(submit_all())

    async def submit(self, command: Command[T]) -> T:
        """Execute a command in the next group commit, and return its answer.

        Raises the command's refusal. Raises :class:`Unavailable` at once if too many commands
        wait, or if the service is stopping.
        """
        # A batch mixes commands with answers of different types. The answer to this command is a T.
        return cast("T", await self._enter(command))

    def defer(self, command: Command[object]) -> None:
        """Execute a command in the commit of the next writing command, or after ``DEFERRED_S``.

        The command is executed before commands that are submitted later. It has no answer. If the
        process dies before that commit, the command is never executed.
        """
        self._defer(PendingCommand(command, is_deferred=True))

    def submit_with_next(self, command: Command[T]) -> asyncio.Future[T]:
        """Execute a command like :meth:`defer`.

        The returned future gets the answer after the commit.

        If the service is stopping, the answer may be :class:`Unavailable`.
        """
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._defer(PendingCommand(command, future, is_deferred=True))
        if not self.is_alive:
            # The thread may have ended without this command.
            self._refuse(_all_of(self._deferred))
        return cast("asyncio.Future[T]", future)

    def hasten(self) -> None:
        """Execute the deferred commands now, because a request waits for them."""
        # If the queue is full, the next waiting command takes the deferred commands along.
        with suppress(Unavailable):
            if self._deferred:
                # The command gets an empty context. Otherwise, it could be dropped if this client
                # leaves, and other callers need it.
                Context().run(self._waiting.put, PendingCommand(Write(_nothing), is_deferred=True))
                self._wake()

    def _defer(self, pending: PendingCommand) -> None:
        self._deferred.append(pending)
        # The timer gets an empty context, because it no longer matters whether the client leaves.
        loop = asyncio.get_running_loop()
        loop.call_later(DEFERRED_S, self._end_wait, pending, context=Context())

    def _end_wait(self, pending: PendingCommand) -> None:
        """Execute the deferred commands now, if ``pending`` is still the oldest of them."""
        # The writer thread may take the deferred commands meanwhile.
        with suppress(IndexError):
            if self._deferred[0] is pending:
                self.hasten()

    def _enter(self, command: Command[object]) -> asyncio.Future[object]:
        if self._is_stopping or not self.is_alive:
            raise Unavailable("The service is stopping.")
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.put(PendingCommand(command, future))
        self._wake()
        if self._has_ended:
            # The thread ended after the check above, and may not have seen this command.
            self._refuse(self._waiting.drain())
        return future

    def _wake(self) -> None:
        if len(self._waiting) >= self._wanted and not self._wakeup.is_set():
            self._wakeup.set()

    def _run(self) -> None:
        batch: list[PendingCommand] = []
        try:
            while batch := self._take():
                self._batches += 1
                self._is_at_work = True
                begun_s = time.perf_counter()
                outcomes = carry_out(self._store, self._executor, batch, self._late, self._planner)
                self._failures = self._failures + 1 if all(map(_fails, outcomes)) else 0
                self._expect(batch, time.perf_counter() - begun_s)
                self._answer(batch, outcomes)
                self._planner.end()
                self._is_at_work = False
                batch = []
        finally:
            # The thread ends here, for whatever reason. No other code would answer these commands.
            self._has_ended = True
            self._planner.stop()
            self._refuse([*batch, *self._waiting.drain(), *_all_of(self._deferred)])
            count_the_rest()

    def _refuse(self, commands: Sequence[PendingCommand]) -> None:
        self._answer(commands, [Unavailable("The writer thread has ended.")] * len(commands))

    def _take(self) -> list[PendingCommand]:
        """Wait for commands, and return the next batch; it is empty if the thread must end."""
        batch: list[PendingCommand] = []
        # This is a loop, because the wake-up for a command of the last batch may come late, and
        # because all taken commands may be unwanted.
        while not batch and (self._waiting or self._deferred or not self._is_stopping):
            while not self._waiting and not self._is_stopping:
                self._await(1, metrics.SETTLES_EVERY_S if metrics.LATER else None)
                if not self._waiting:
                    count_the_rest()
            self._gather()
            batch = self._late(())
        return batch

    def _late(self, batch: Sequence[PendingCommand]) -> list[PendingCommand]:
        """Take the waiting commands for which the batch has room, and drop the unwanted ones."""
        room = BATCH_MAX - len(batch)
        lines = LINES_MAX - sum(each.command.lines for each in batch)
        found = self._waiting.take(room, lines, is_first=not batch)
        wanted: list[PendingCommand] = []
        unwanted: list[PendingCommand] = []
        for each in found:
            # ``is_unwanted`` is read once, because the client may leave at any moment.
            (unwanted if each.is_unwanted else wanted).append(each)
        for each in wanted:
            each.caller.must_finish()
        if unwanted:
            self._drop(unwanted)
        if self._deferred and (self._is_stopping or any(e.command.is_writing for e in wanted)):
            # The deferred commands are taken last, to include all that were deferred before a
            # wanted command arrived.
            return [*_all_of(self._deferred), *wanted]
        return wanted

    def _drop(self, unwanted: Sequence[PendingCommand]) -> None:
        self._answer(unwanted, [ClientLeft()] * len(unwanted))
        for kind, count in Counter(each.command.kind for each in unwanted).items():
            metrics.DROPPED.labels(kind).inc(count)

    def _expect(self, batch: Sequence[PendingCommand], took_s: float) -> None:
        """Set how many commands to expect after this batch, and how long to wait for them."""
        # A deferred command does not make a client send its next command.
        answered = sum(not each.is_deferred for each in batch)
        # After a batch of one command, no commands are expected, so that the next command is not
        # delayed.
        self._expected = min(answered + len(self._waiting), BATCH_MAX) if answered > 1 else 0
        self._gather_s = min(max(GATHER_MIN_S, GATHER_SHARE * took_s), GATHER_MAX_S)

    def _gather(self) -> None:
        until_s = time.perf_counter() + 2 * self._gather_s
        here = 0
        while here < len(self._waiting) < self._expected and time.perf_counter() < until_s:
            here = len(self._waiting)
            self._await(self._expected, self._gather_s)

    def _await(self, count: int, timeout_s: float | None) -> None:
        """Sleep until ``count`` commands wait, the timeout has passed or the thread must end."""
        self._wanted = count
        self._wakeup.clear()
        # The condition is checked after the event is cleared, so that no command is missed.
        if len(self._waiting) < count and not self._is_stopping:
            self._wakeup.wait(timeout_s)

    def _answer(self, batch: Sequence[PendingCommand], outcomes: Sequence[object]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[PendingCommand]] = {}
        for each, outcome in zip(batch, outcomes, strict=True):
            each.outcome = outcome
            if each.future is not None and not each.future.cancelled():
                by_loop.setdefault(each.future.get_loop(), []).append(each)
        for loop, answered in by_loop.items():
            try:
                # One wake-up serves all commands of a loop, because each wake-up costs a system
                # call.
                loop.call_soon_threadsafe(_resolve, answered)
            except RuntimeError:
                # The loop is closed and its clients are gone, but the commands are committed.
                LOG.warning("answers_lost", steps=len(answered))


def _resolve(commands: Sequence[PendingCommand]) -> None:
    for each in commands:
        future = each.future
        if future is None or future.done():
            continue
        if isinstance(each.outcome, StopIteration):
            # A future rejects this exception, because it would end the awaiting coroutine.
            error = RuntimeError("A command raised StopIteration.")
            error.__cause__ = each.outcome
            future.set_exception(error)
        elif isinstance(each.outcome, Exception):
            future.set_exception(each.outcome)
        else:
            future.set_result(each.outcome)


def _all_of(commands: deque[PendingCommand]) -> list[PendingCommand]:
    """Remove and return all commands of a queue, which other threads may empty meanwhile."""
    found: list[PendingCommand] = []
    with suppress(IndexError):
        while commands:
            found.append(commands.popleft())
    return found


def _fails(outcome: object) -> bool:
    is_refused = isinstance(outcome, Refusal) and not isinstance(outcome, Unavailable)
    return isinstance(outcome, Exception) and not is_refused


def _nothing(tx: Tx) -> None:
    """Write nothing, so that the commit has only the deferred commands."""
    del tx
