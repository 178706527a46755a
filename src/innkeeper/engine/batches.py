"""Carrying out one batch of steps in one commit, and what becomes of it when that fails.

Always true: each step has one answer, and an answer that is no error is on the disk. Repeats
are bounded in number and time, and paused at random, so that processes which failed together do
not come back together.

What is repeated, and what is not (:mod:`innkeeper.engine.retry` has the numbers):

- Where another transaction was in the way, or the database was gone before the commit was
  sent, nothing has happened: the whole batch is tried again, on another connection.
- Who has waited for other writers in vain is refused; each step alone would wait as long.
- A batch that fails for another reason is repeated step by step: one of them is poison. That
  ends with the first step that finds the database gone, or others in the way for too long.
- Where the answer to the commit did not arrive, boots are looked up, by the ids of their
  servers, in the transaction that would repeat them. It writes, so it has waited for the end of
  the lost one. Any other step is answered that nobody knows: if it was done, a repeat would be
  refused, and its client told that it had not been.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

import structlog

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Busy, Doubtful, Refusal, Unavailable, Unreachable
from innkeeper.engine import metrics
from innkeeper.engine.commands import (
    Boot,
    Command,
    Decide,
    Deciding,
    Explain,
    Together,
    Write,
    WriteTogether,
)
from innkeeper.engine.retry import LOOK_UPS_MAX, PASSING, Repeats
from innkeeper.store.transactions import Store, Tx, step
from innkeeper.systems.compute.boot.dry_run import Explained, Question

LOG = structlog.get_logger("innkeeper.decisions")
T = TypeVar("T")

OF_ALL = (Busy, Unreachable)
"""What is no fault of any step: whoever comes next is told so as well."""


class Executor(Protocol):
    """What the thread needs of the rooms: boots in bulk, and the host table kept in step."""

    def begin(self, tx: Tx) -> None:
        """Start the work of one transaction."""

    def boot(self, tx: Tx, requests: Sequence[BootRequest]) -> Sequence[Booted | Refusal]:
        """Decide on and write all requests; an exception in the list is that one's refusal."""

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """The answer to a request that an earlier commit has carried out; else ``None``."""

    def explain(self, tx: Tx, question: Question) -> Explained:
        """Decide without writing, and tell why."""

    def decide(self, tx: Tx, work: Deciding[T], now: datetime) -> T:
        """Do work that decides; it is given the transaction and the means to decide."""

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to all that ``tx`` sees."""

    def forget(self) -> None:
        """Throw away what the last transaction did to the host table; it did not happen."""


@dataclass(slots=True)
class PendingCommand:
    """One command that waits, and where its answer goes.

    ``outcome`` is the answer, or the exception that is raised in its place. A boot that has
    ``look_ups`` may have been carried out before, so it is looked up first.
    """

    command: Command[object]
    future: asyncio.Future[object] | None = None
    look_ups: int = 0
    outcome: object = None


def nobody_late(batch: Sequence[PendingCommand]) -> Sequence[PendingCommand]:
    """No more steps than a batch has."""
    del batch
    return ()


def carry_out(
    store: Store,
    executor: Executor,
    batch: list[PendingCommand],
    late: Callable[[Sequence[PendingCommand]], Sequence[PendingCommand]] = nobody_late,
) -> list[object]:
    """Carry out one batch in one commit; an exception in the list is that step's answer.

    ``late`` gives steps that are to be added to the batch: those that came while it waited for
    its turn to write. As many processes as there are wait, and a batch that leaves half full
    makes the other half wait for all of them once more.
    """
    repeats = Repeats()
    outcomes: list[object] | None = None
    while outcomes is None:
        outcomes = _attempt(store, executor, batch, late, repeats)
    return outcomes


def _attempt(
    store: Store,
    executor: Executor,
    batch: list[PendingCommand],
    late: Callable[[Sequence[PendingCommand]], Sequence[PendingCommand]],
    repeats: Repeats,
) -> list[object] | None:
    """The steps' answers; ``None`` if nothing happened and it is worth another attempt."""
    started_s = time.perf_counter()
    try:
        outcomes = _commit(store, executor, batch, late)
    except Exception as error:
        executor.forget()
        metrics.lost(error)
        if isinstance(error, Doubtful):
            return _after_doubt(store, executor, batch, error)
        if isinstance(error, PASSING.errors) and repeats.wait():
            LOG.warning("batch_tried_again", steps=len(batch), error=str(error))
            return None
        if isinstance(error, OF_ALL):
            LOG.error("batch_failed", steps=len(batch), exc_info=error)
            return [error] * len(batch)
        return _one_by_one(store, executor, batch, error)
    _count(batch, outcomes, time.perf_counter() - started_s)
    return outcomes


def _one_by_one(
    store: Store, executor: Executor, batch: Sequence[PendingCommand], error: Exception
) -> list[object]:
    """Answer the steps of a batch that raised ``error``, each for itself."""
    if len(batch) == 1:
        if isinstance(error, Unavailable) or not isinstance(error, Refusal):
            LOG.error("batch_failed", steps=1, exc_info=error)
        return [error]
    # One of them is poison. Alone, it cannot take the others with it.
    LOG.warning("batch_repeated", steps=len(batch), error=str(error))
    answers: list[object] = []
    for each in batch:
        (answer,) = carry_out(store, executor, [each])
        answers.append(answer)
        if isinstance(answer, OF_ALL):
            # Each of the others would wait as long, one after the other, and be told the same.
            return answers + [answer] * (len(batch) - len(answers))
    return answers


def _after_doubt(
    store: Store, executor: Executor, batch: Sequence[PendingCommand], error: Doubtful
) -> list[object]:
    """Answer the steps of a batch whose commit nobody has answered."""
    LOG.error("commit_in_doubt", steps=len(batch), exc_info=error)
    asked = [_asked_again(each) for each in batch]
    again = [each for each in asked if each is not None]
    answers = iter(carry_out(store, executor, again) if again else [])
    # Whoever could not be looked up is still in doubt, whatever the reason was.
    return [error if each is None else _known(next(answers), error) for each in asked]


def _asked_again(each: PendingCommand) -> PendingCommand | None:
    """How a step is repeated that may be done already; ``None`` if it cannot be."""
    if isinstance(each.command, Explain):
        return each
    if isinstance(each.command, Boot) and each.look_ups < LOOK_UPS_MAX:
        return replace(each, look_ups=each.look_ups + 1)
    return None


def _known(answer: object, doubt: Doubtful) -> object:
    return doubt if isinstance(answer, Unavailable) else answer


def _count(batch: Sequence[PendingCommand], outcomes: Sequence[object], took_s: float) -> None:
    try:
        boots = [
            outcome
            for each, outcome in zip(batch, outcomes, strict=True)
            if isinstance(each.command, Boot)
        ]
        for kind, count in Counter(map(_kind_of, boots)).items():
            metrics.BOOTS.labels(kind).inc(count)
        refusing = (each.refused_by for each in boots if isinstance(each, Booted))
        for name, count in Counter(filter(None, refusing)).items():
            metrics.REFUSALS.labels(name).inc(count)
        metrics.BATCH.observe(len(batch))
        metrics.COMMIT.observe(took_s)
    except Exception as error:
        # What was committed is not undone by a number that nobody could make of it.
        LOG.error("commit_uncounted", exc_info=error)


def _commit(
    store: Store,
    executor: Executor,
    batch: list[PendingCommand],
    late: Callable[[Sequence[PendingCommand]], Sequence[PendingCommand]],
) -> list[object]:
    asked_s = time.perf_counter()
    with store.write() as tx:
        metrics.TURN.observe(time.perf_counter() - asked_s)
        batch += late(batch)
        outcomes: list[object] = [None] * len(batch)
        executor.begin(tx)
        # Boots first: they are decided on the host table as of the last commit, which the
        # other steps of this batch are about to change.
        _boot(tx, executor, batch, outcomes)
        _write_together(tx, batch, outcomes)
        for i, each in enumerate(batch):
            if not isinstance(each.command, Boot | WriteTogether):
                outcomes[i] = _alone(tx, executor, each.command)
        executor.follow(tx)
    metrics.FOLLOWED.set_to_current_time()
    return outcomes


def _boot(
    tx: Tx, executor: Executor, batch: Sequence[PendingCommand], outcomes: list[object]
) -> None:
    boots: list[int] = []
    requests: list[BootRequest] = []
    for i, each in enumerate(batch):
        if isinstance(each.command, Boot):
            request = each.command.request
            outcomes[i] = executor.already_booted(tx, request) if each.look_ups else None
            if outcomes[i] is None:
                boots.append(i)
                requests.append(request)
    if boots:
        answers = executor.boot(tx, requests)
        for i, answer in zip(boots, answers, strict=True):
            outcomes[i] = answer


def _write_together(tx: Tx, batch: Sequence[PendingCommand], outcomes: list[object]) -> None:
    """Do for all at once what several steps want done; they need no savepoints."""
    alike: dict[Together[object], tuple[list[int], list[object]]] = {}
    for i, each in enumerate(batch):
        if isinstance(each.command, WriteTogether):
            indices, items = alike.setdefault(each.command.work, ([], []))
            indices.append(i)
            items.append(each.command.item)
    for work, (indices, items) in alike.items():
        for i, refusal in zip(indices, work(tx, items), strict=True):
            outcomes[i] = refusal


def _alone(tx: Tx, executor: Executor, command: Command[object]) -> object:
    try:
        if isinstance(command, Explain):
            return executor.explain(tx, command.question)
        with step(tx):
            if isinstance(command, Decide):
                return executor.decide(tx, command.work, command.now)
            assert isinstance(command, Write), "there are no other commands"
            return command.work(tx)
    except Refusal as refusal:
        return refusal


def _kind_of(answer: object) -> str:
    if isinstance(answer, Exception):
        return "refused"
    assert isinstance(answer, Booted), "a boot that was not refused has ended"
    return "placed" if answer.fault is None else "no_valid_host"
