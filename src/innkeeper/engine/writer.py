"""The one thread that decides and writes: whatever waits at the same moment shares a commit.

Always true: a step is answered only after the commit that carries it; each step stands or
falls alone; only this thread touches the host table, so no decision sees half a claim.

Always true: every step that was taken in is answered, even if the thread itself ends. How a
batch is carried out, and what becomes of it when the database fails, is in
:mod:`innkeeper.engine.batches`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TypeVar, cast

import structlog

from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.engine.batches import Executor, PendingCommand, carry_out
from innkeeper.engine.commands import Command
from innkeeper.store.transactions import Store

LOG = structlog.get_logger("innkeeper.decisions")
T = TypeVar("T")

BATCH_MAX = 256
"""Steps in one commit. Larger ones make the first in it wait for the last."""
LINES_MAX = 2_000
"""A batch ends with the step that brings it to so many lines. A line is a thing to write: one
amount of an allocation, one server. One client's body can hold thousands of them."""
GATHER_S = 0.003
GATHER_MAX_S = 0.006
"""Where several steps came together the last time, others are on their way: their requests are
being read. A commit waits until as many are here as were answered then, or as long as they keep
coming, and not for long. To look whether they do takes the interpreter from who brings them, so
it is looked once or twice."""
FAILURES_MAX = 5
"""Batches in a row of which nothing was carried out, before the service is not ready."""
WAITING_MAX = 10_000
"""Steps that may wait. More would not be answered before their clients give up."""


class Writer:
    """Takes steps from any thread, carries them out in batches, and answers them."""

    def __init__(self, store: Store, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self._waiting: deque[PendingCommand] = deque()
        self._wakeup = threading.Event()
        # So many must wait before the thread is woken: each wake-up takes the interpreter from
        # those who bring the next.
        self._wanted = 1
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)
        self._is_stopping = False
        self._answered = 0
        self._has_ended = False
        self._failures = 0
        self._batches = 0
        self._is_at_work = False

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Finish what waits, then end. New steps are refused from now on."""
        self._is_stopping = True
        self._wakeup.set()
        self._thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether steps are being carried out."""
        return self._thread.is_alive() and not self._has_ended

    @property
    def is_failing(self) -> bool:
        """Whether nothing was written for a while, and not because of what was asked for.

        Periodic tasks write as well, so this is over soon after its cause is.
        """
        return self._failures >= FAILURES_MAX

    @property
    def progress(self) -> int | None:
        """How many batches were begun; ``None`` while there is nothing to be done."""
        return self._batches if self._is_at_work or self._waiting else None

    @property
    def thread_id(self) -> int | None:
        """The interpreter's number of the thread, once it has begun."""
        return self._thread.ident

    @property
    def waiting(self) -> int:
        """How many steps wait."""
        return len(self._waiting)

    def submit_and_wait(self, command: Command[T], timeout_s: float) -> T:
        """As :meth:`submit`, for a thread that may wait."""
        with closing(asyncio.new_event_loop()) as loop:
            return loop.run_until_complete(asyncio.wait_for(self.submit(command), timeout_s))

    async def submit(self, command: Command[T]) -> T:
        """Have a command carried out in the next group commit; its refusal is raised here.

        Raises :class:`Unavailable` at once where too many wait, or the service is stopping.
        """
        if self._is_stopping or not self.is_alive:
            raise Unavailable("The service is stopping.")
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable("Too many requests wait already.")
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingCommand(command, future))
        if len(self._waiting) >= self._wanted and not self._wakeup.is_set():
            self._wakeup.set()
        if self._has_ended:
            # It ended between the look above and now, and may not have seen this step.
            self._refuse(self._left())
        # Commands of all types share a batch; each is answered by what its own type promises.
        return cast("T", await future)

    def _run(self) -> None:
        batch: list[PendingCommand] = []
        try:
            while batch := self._take():
                self._batches += 1
                self._is_at_work = True
                outcomes = carry_out(self._store, self._executor, batch, self._late)
                self._failures = self._failures + 1 if all(map(_fails, outcomes)) else 0
                self._answered = len(batch)
                self._answer(batch, outcomes)
                self._is_at_work = False
                batch = []
        finally:
            # Whatever brought it down: who waits here would wait for good.
            self._has_ended = True
            self._refuse([*batch, *self._left()])

    def _left(self) -> list[PendingCommand]:
        left: list[PendingCommand] = []
        with suppress(IndexError):
            while self._waiting:
                left.append(self._waiting.popleft())
        return left

    def _refuse(self, steps: Sequence[PendingCommand]) -> None:
        self._answer(steps, [Unavailable("No decisions are being made.")] * len(steps))

    def _take(self) -> list[PendingCommand]:
        """All that waits, and in company what is about to; nothing once there is an end."""
        # More than once: who was late to ring for a step that is done already rings in vain.
        while not self._waiting and not self._is_stopping:
            self._await(1, None)
        # A step that waited alone is not made to wait: nobody else is about to come.
        if self._answered > 1:
            self._gather()
        return self._late(())

    def _late(self, batch: Sequence[PendingCommand]) -> list[PendingCommand]:
        """What waits now and has room in a batch beside these."""
        found: list[PendingCommand] = []
        room = BATCH_MAX - len(batch)
        lines = sum(each.command.lines for each in batch)
        while self._waiting and len(found) < room and lines < LINES_MAX:
            found.append(self._waiting.popleft())
            lines += found[-1].command.lines
        return found

    def _gather(self) -> None:
        until_s = time.perf_counter() + GATHER_MAX_S
        here = 0
        while here < len(self._waiting) < self._answered and time.perf_counter() < until_s:
            here = len(self._waiting)
            self._await(self._answered, GATHER_S)

    def _await(self, count: int, timeout_s: float | None) -> None:
        """Sleep until so many steps wait, the time is over or the thread is to end."""
        self._wanted = count
        self._wakeup.clear()
        # After the event is cleared, so that nobody can come in unheard.
        if len(self._waiting) < count and not self._is_stopping:
            self._wakeup.wait(timeout_s)

    def _answer(self, batch: Sequence[PendingCommand], outcomes: Sequence[object]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[PendingCommand]] = {}
        for each, outcome in zip(batch, outcomes, strict=True):
            each.outcome = outcome
            if each.future is not None:
                by_loop.setdefault(each.future.get_loop(), []).append(each)
        for loop, steps in by_loop.items():
            try:
                # One wake-up for all: each costs a system call.
                loop.call_soon_threadsafe(_settle, steps)
            except RuntimeError:
                # The loop is closed: its clients are gone, and the work is done all the same.
                LOG.warning("answers_lost", steps=len(steps))


def _settle(steps: Sequence[PendingCommand]) -> None:
    for each in steps:
        future = each.future
        if future is None or future.done():
            continue
        if isinstance(each.outcome, StopIteration):
            # A future takes anything but this one, which would end the coroutine that waits.
            error = RuntimeError("A step ended an iteration that was not its own.")
            error.__cause__ = each.outcome
            future.set_exception(error)
        elif isinstance(each.outcome, Exception):
            future.set_exception(each.outcome)
        else:
            future.set_result(each.outcome)


def _fails(outcome: object) -> bool:
    """Whether a step was not carried out for no fault of who asked for it."""
    is_refused = isinstance(outcome, Refusal) and not isinstance(outcome, Unavailable)
    return isinstance(outcome, Exception) and not is_refused
