"""Executes one batch of commands in one commit, and decides what follows a failure.

Always true: each command gets one answer. If the answer is a success, the changes of the command
are on the disk. Retries are limited in number and time, with randomized pauses, so that processes
that failed together do not retry together.

What follows a failure (:mod:`innkeeper.engine.retry` has the numbers of retries):

- If the batch conflicted with another transaction, or if the connection was lost before the commit
  was sent, nothing was written. The whole batch is retried on another connection.
- A batch that timed out while waiting for other writers is refused. Retrying its commands one by
  one would not help, because each would wait just as long.
- After any other failure, one of the commands is at fault. So all commands are executed one by one.
  This ends early if the database is unreachable, or if a command times out while waiting for other
  writers.
- If the connection was lost after the commit was sent, boots are looked up by the ids of their
servers. The same write transaction repeats the missing boots. A write transaction first waits until
the lost transaction has ended. Other writes are not retried. Their clients are told that the
outcome is unknown. If a committed write were retried, it could be refused, and the client would
conclude that the write had failed.
- A request may repeat a boot that another process has already committed. Such a boot is also looked
  up by the ids of its servers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import structlog

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Busy, Doubtful, Refusal, Unavailable, Unreachable
from innkeeper.domain.ids import ServerId
from innkeeper.engine import metrics
from innkeeper.engine.callers import NOBODY, Caller
from innkeeper.engine.commands import (
    Boot,
    BootEntries,
    Command,
    Decide,
    DecideTogether,
    DecidingTogether,
    Explain,
    Together,
    Write,
    WriteTogether,
)
from innkeeper.engine.executor import NO_PLANNER, Executor, Planner
from innkeeper.engine.repeats import Repeats
from innkeeper.engine.retry import LOOK_UPS_MAX, PASSING
from innkeeper.store.transactions import Store, Tx, step
from innkeeper.systems.compute.boot.context import DecisionContext

LOG = structlog.get_logger("innkeeper.decisions")

OF_ALL = (Busy, Unreachable)
"""Errors that are not the fault of any command. If commands are executed one by one, such an error
ends the execution, and all remaining commands get the error."""


TOGETHER = (Boot, BootEntries, DecideTogether, WriteTogether)
"""Several commands of one of these types are executed together. A command of any other type is
executed alone, in a savepoint."""


@dataclass(slots=True)
class PendingCommand:
    """One waiting command, and the future that gets its answer.

    ``outcome`` is the answer or the exception. If the command is a boot that may already be
    committed, ``look_ups`` is above 0. Such a boot is looked up before it is executed. The command
    has waited since ``entered_s`` (by ``time.perf_counter``). With ``is_deferred``, no client waits
    for the commit.
    """

    command: Command[object]
    future: asyncio.Future[object] | None = None
    look_ups: int = 0
    outcome: object = None
    caller: Caller = NOBODY
    entered_s: float = 0.0
    is_deferred: bool = False

    @property
    def is_unwanted(self) -> bool:
        """Whether the command may be dropped, because nobody waits for its answer any more."""
        is_cancelled = self.future is not None and self.future.cancelled()
        return is_cancelled or self.caller.has_left


Late = Callable[[Sequence[PendingCommand]], Sequence[PendingCommand]]
"""A function that gets a batch, and returns more commands to execute with it."""


def no_more(batch: Sequence[PendingCommand]) -> Sequence[PendingCommand]:
    """Return no further commands for a batch."""
    del batch
    return ()


def carry_out(
    store: Store,
    executor: Executor,
    batch: list[PendingCommand],
    late: Late = no_more,
    planner: Planner = NO_PLANNER,
) -> list[object]:
    """Execute a batch in one commit; returns each command's answer, which may be an exception.

    ``late`` returns commands that arrived while the batch waited for its turn to write. These
    commands join the batch. Otherwise, they would wait until every other process has had its turn.

    After the return, ``planner`` may still hold the host table. The caller must call
    ``planner.end`` before it uses the executor again.
    """
    repeats = Repeats()
    outcomes: list[object] | None = None
    while outcomes is None:
        outcomes = _attempt(store, executor, batch, late, planner, repeats)
    return outcomes


def _attempt(
    store: Store,
    executor: Executor,
    batch: list[PendingCommand],
    late: Late,
    planner: Planner,
    repeats: Repeats,
) -> list[object] | None:
    """Return the commands' answers, or ``None`` if the batch was rolled back for a retry."""
    started_s = time.perf_counter()
    try:
        outcomes = _commit(store, executor, batch, late, planner)
    except Exception as error:
        planner.end()
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
    """Execute each command of a failed batch in a commit of its own.

    ``error`` is the error of the batch.
    """
    if len(batch) == 1:
        command = batch[0].command
        if isinstance(command, BootEntries) and len(command.request.entries) > 1:
            return [_entry_by_entry(store, executor, batch[0], command)]
        if isinstance(error, Unavailable) or not isinstance(error, Refusal):
            LOG.error("batch_failed", steps=1, exc_info=error)
        return [error]
    # One of the commands is at fault. If it is executed alone, the other commands do not fail with
    # it.
    LOG.warning("batch_repeated", steps=len(batch), error=str(error))
    answers: list[object] = []
    for each in batch:
        (answer,) = carry_out(store, executor, [each])
        answers.append(answer)
        if isinstance(answer, OF_ALL):
            # Each of the remaining commands would wait just as long, and get the same error.
            return answers + [answer] * (len(batch) - len(answers))
    return answers


def _entry_by_entry(
    store: Store, executor: Executor, each: PendingCommand, command: BootEntries
) -> object:
    """Boot each entry in a commit of its own, because booting all entries in one commit failed."""
    request, is_repeat = command.request, each.look_ups > 0
    admit = PendingCommand(Write(lambda tx: command.admit(tx, is_repeat)))
    (closed,) = carry_out(store, executor, [admit])
    if not isinstance(closed, Collection):
        return closed
    found: dict[ServerId, object] = {}
    for entry in request.entries:
        if entry.server_id in closed:
            continue
        part = BootEntries(msgspec.structs.replace(request, entries=(entry,)), lambda _, __: ())
        (answer,) = carry_out(store, executor, [PendingCommand(part, look_ups=each.look_ups)])
        if isinstance(answer, Mapping):
            found |= answer
        elif isinstance(answer, Unavailable) or not isinstance(answer, Refusal):
            return answer
        else:
            found[entry.server_id] = answer
    return found


def _after_doubt(
    store: Store, executor: Executor, batch: Sequence[PendingCommand], error: Doubtful
) -> list[object]:
    LOG.error("commit_in_doubt", steps=len(batch), exc_info=error)
    retried = [_retried(each) for each in batch]
    again = [each for each in retried if each is not None]
    answers = iter(carry_out(store, executor, again) if again else [])
    # If the look-up of a boot failed, the outcome of the boot is still unknown.
    return [error if each is None else _known(next(answers), error) for each in retried]


def _retried(each: PendingCommand) -> PendingCommand | None:
    """Return the command to retry after a doubtful commit, or ``None`` if a retry is not safe."""
    if isinstance(each.command, Explain):
        return each
    if isinstance(each.command, Boot | BootEntries) and each.look_ups < LOOK_UPS_MAX:
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
        for each, outcome in zip(batch, outcomes, strict=True):
            if isinstance(each.command, BootEntries) and isinstance(outcome, Mapping):
                boots += outcome.values()
        metrics.booted(map(_kind_of, boots))
        for answer in boots:
            if isinstance(answer, Booted) and answer.refused_by is not None:
                metrics.REFUSALS.labels(answer.refused_by).inc()
        metrics.FOLLOWED.set_to_current_time()
        metrics.LATER.add(metrics.BATCH.observe, len(batch))
        metrics.LATER.add(metrics.COMMIT.observe, took_s)
        metrics.LATER.settle_if_due()
    except Exception as error:
        # A failure to count a metric must not fail a committed batch.
        LOG.error("commit_uncounted", exc_info=error)


def count_the_rest() -> None:
    """Count the deferred observations. A failure to count must not end the writer thread."""
    try:
        metrics.LATER.settle()
    except Exception as error:
        LOG.error("commit_uncounted", exc_info=error)


def _commit(
    store: Store, executor: Executor, batch: list[PendingCommand], late: Late, planner: Planner
) -> list[object]:
    begun_s = time.perf_counter()
    with store.write() as tx:
        metrics.LATER.add(metrics.TURN.observe, time.perf_counter() - begun_s)
        batch += late(batch)
        outcomes: list[object] = [None] * len(batch)
        executor.begin(tx)
        # Boots come first. They use the host table, which shows the last commit but not the changes
        # that the other commands of this batch make to the store.
        is_shown = _boot(tx, executor, batch, outcomes)
        _boot_entries(tx, executor, batch, outcomes)
        _decide_together(tx, executor, batch, outcomes)
        _write_together(tx, batch, outcomes)
        for i, each in enumerate(batch):
            if not isinstance(each.command, TOGETHER):
                outcomes[i] = _alone(tx, executor, each.command)
        # If the batch had boots only, the host table shows them already. The next transaction then
        # reads the change feed from where the table stopped.
        has_followed = planner.is_needed or not is_shown
        if has_followed:
            executor.follow(tx)
        # From here on, this thread only waits for the flush.
        planner.begin(has_followed=has_followed)
    return outcomes


def _boot(
    tx: Tx, executor: Executor, batch: Sequence[PendingCommand], outcomes: list[object]
) -> bool:
    """Carry out the boots. Return whether the host table then shows all changes of the batch."""
    boots: list[int] = []
    requests: list[BootRequest] = []
    for i, each in enumerate(batch):
        if isinstance(each.command, Boot):
            request = each.command.request
            may_be_there = request.is_repeat or each.look_ups > 0
            outcomes[i] = executor.already_booted(tx, request) if may_be_there else None
            if outcomes[i] is None:
                boots.append(i)
                requests.append(request)
    if boots:
        answers = executor.boot(tx, requests)
        for i, answer in zip(boots, answers, strict=True):
            outcomes[i] = answer
    return len(boots) == len(batch)


def _boot_entries(
    tx: Tx, executor: Executor, batch: Sequence[PendingCommand], outcomes: list[object]
) -> None:
    for i, each in enumerate(batch):
        command = each.command
        if not isinstance(command, BootEntries):
            continue
        try:
            with step(tx):
                closed = command.admit(tx, each.look_ups > 0)
        except Refusal as refusal:
            outcomes[i] = refusal
            continue
        request = command.open_but(closed)
        outcomes[i] = {} if request is None else executor.boot_entries(tx, request)


def _decide_together(
    tx: Tx, executor: Executor, batch: Sequence[PendingCommand], outcomes: list[object]
) -> None:
    """Run each distinct ``work`` once, with the items of all commands that have it."""
    alike: dict[DecidingTogether[object, object], list[int]] = {}
    for i, each in enumerate(batch):
        if isinstance(each.command, DecideTogether):
            alike.setdefault(each.command.work, []).append(i)
    for work, indices in alike.items():
        commands = [batch[i].command for i in indices]
        items = [each.item for each in commands if isinstance(each, DecideTogether)]
        now = max(each.now for each in commands if isinstance(each, DecideTogether))
        answers = executor.decide(tx, partial(_run, work, items), now)
        for i, answer in zip(indices, answers, strict=True):
            outcomes[i] = answer


def _run(
    work: DecidingTogether[object, object],
    items: Sequence[object],
    tx: Tx,
    context: DecisionContext,
) -> Sequence[object]:
    return work(tx, context, items)


def _write_together(tx: Tx, batch: Sequence[PendingCommand], outcomes: list[object]) -> None:
    """Run each distinct ``work`` once, with the items of all commands that have it.

    No savepoints are used.
    """
    alike: dict[Together[object, object], tuple[list[int], list[object]]] = {}
    for i, each in enumerate(batch):
        if isinstance(each.command, WriteTogether):
            indices, items = alike.setdefault(each.command.work, ([], []))
            indices.append(i)
            items.append(each.command.item)
    for work, (indices, items) in alike.items():
        for i, answer in zip(indices, work(tx, items), strict=True):
            outcomes[i] = answer


def _alone(tx: Tx, executor: Executor, command: Command[object]) -> object:
    try:
        if isinstance(command, Explain):
            return executor.explain(tx, command.question)
        if isinstance(command, Decide) and command.is_plan:
            # A plan writes nothing, so it needs no savepoint.
            return executor.decide(tx, command.work, command.now)
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
    assert isinstance(answer, Booted), "the answer to a boot is Booted or an error"
    return "placed" if answer.fault is None else "no_valid_host"
