"""Carries out the due events of leases in short steps, as a periodic task.

Always true: nothing is written while no event is due. First, all due events are begun. Then the
leases take turns, one step at a time, so a lease with many hosts does not delay the others. Steps
of several leases share a commit. A failed step does not affect the other steps.

One process at a time does this work. It extends its turn with every commit. If it dies, another
process takes over :data:`TURN_S` after the last commit. The state of events is in the store, so
nothing is lost. A process itself remembers only which lease is next, and which leases must wait.

What is retried: a lease that waits for an agent, or whose rows another writer has changed, is
retried after short pauses, without a limit. An unexpected error is retried
``lease_event_retries_max`` times, with growing pauses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from innkeeper.domain.errors import ConcurrentUpdate, Unavailable
from innkeeper.domain.ids import Clock
from innkeeper.engine import metrics
from innkeeper.engine.commands import Write
from innkeeper.engine.writer import Writer
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.leases import events
from innkeeper.systems.leases.context import LeaseContext

LOG = structlog.get_logger("innkeeper.leases")
TASK = "lease_events"
PERIOD_S = 0.5
"""Events begin within a second of their time."""
TURN_S = 5.0
"""A process loses its turn if it has not extended the turn for this time, for example because it
died."""
WORK_S = 2.0
"""The task returns after about this time, so that it can be stopped. It continues in its next
period."""
LEASES_AT_ONCE = 20
"""The maximum number of leases that take a step together."""
DONE_AT_ONCE = 50
"""After this number of changes, a transaction begins no further step, because all other writers
wait for the transaction."""
BEGUN_AT_ONCE = DONE_AT_ONCE
"""The maximum number of leases whose events are begun together."""
LINES = 50
"""An estimate of the number of rows that a step writes."""
SKIPPED = -1
"""The answer for a lease whose step was left to the next commit."""
WAIT_FIRST_S = 0.5
WAIT_MAX_S = 4.0
"""The first and the longest pause of a lease that waits for an agent."""
FAILED_FIRST_S = 1.0
FAILED_MAX_S = 60.0
"""The first and the longest pause after unexpected errors."""
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""

Answer = int | BaseException
Act = Callable[[Tx, str, LeaseContext], int]


@dataclass(slots=True)
class _Pause:
    """The current pause of a lease: its length and its end."""

    length_s: float
    until: datetime


class _Load:
    """Steps of several leases that are submitted together.

    ``turn`` is the time that identifies the process's turn. If the transaction is retried, the work
    is counted again from 0.
    """

    def __init__(self, turn: datetime, act: Act, context: LeaseContext) -> None:
        self._turn = turn
        self._act = act
        self._context = context
        self._tx: Tx | None = None
        self._done = 0

    def step(self, tx: Tx, uuid: str) -> int:
        """Let a lease take a step, unless the transaction is full or the turn is lost."""
        if self._tx is not tx:
            self._tx, self._done = tx, 0
        if self._done >= DONE_AT_ONCE:
            return SKIPPED
        if not periodic.is_held(tx, TASK, self._turn):
            return 0
        done = self._act(tx, uuid, self._context)
        self._done += done
        return done


class LeaseEvents:
    """Carries out the events of all leases in one process.

    ``timer_s`` returns monotonic seconds.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        timer_s: Callable[[], float],
        context: Callable[[], LeaseContext],
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._timer_s = timer_s
        self._context = context
        self._turn: datetime | None = None
        self._queue: deque[str] = deque()
        self._idle: dict[str, int] = {}
        self._pauses: dict[str, _Pause] = {}
        self._progress = 0

    def work(self) -> int:
        """Carry out due events. Return the amount of work done."""
        before, end_s = self._progress, self._timer_s() + WORK_S
        looked_s = self._timer_s()
        self._begin_due()
        while (self._queue or self._wake_idle()) and self._timer_s() < end_s:
            self._step()
            if self._timer_s() - looked_s >= PERIOD_S:
                looked_s = self._timer_s()
                self._begin_due()
        if not self._queue:
            self._pause_idle()
        return self._progress - before

    # -- what is due -----------------------------------------------------------------------

    def _begin_due(self) -> None:
        """Read the due events, and begin new ones."""
        now = self._clock()
        with self._store.read() as tx:
            is_ours = events.is_any_due(tx, now) and periodic.is_open(
                tx, TASK, self._turn, TURN_S, now
            )
            found = events.due(tx, now) if is_ours else []
        # Leases that have no due events any more need no pause.
        self._pauses = {uuid: self._pauses[uuid] for uuid in found if uuid in self._pauses}
        known = {*self._queue, *self._idle}
        now_due = [uuid for uuid in found if uuid not in known and not self._must_wait(uuid, now)]
        new = [uuid for uuid in now_due if uuid not in self._pauses]
        self._begin(new)
        self._queue.extend(uuid for uuid in now_due if uuid in self._pauses)

    def _begin(self, new: Sequence[str]) -> None:
        for start in range(0, len(new), BEGUN_AT_ONCE):
            some = new[start : start + BEGUN_AT_ONCE]
            for uuid, has_more in self._write(some, events.begin, 1).items():
                if isinstance(has_more, BaseException):
                    self._after_error(uuid, has_more)
                else:
                    self._progress += 1
                    self._queue.extend([uuid] if has_more else [])

    def _must_wait(self, uuid: str, now: datetime) -> bool:
        pause = self._pauses.get(uuid)
        # If the clock was set back, a lease must not wait longer than the longest pause.
        longest = timedelta(seconds=FAILED_MAX_S)
        return pause is not None and now < pause.until <= now + longest

    # -- steps -----------------------------------------------------------------------------

    def _step(self) -> None:
        """Let the next leases take one step each."""
        some = [self._queue.popleft() for _ in range(min(LEASES_AT_ONCE, len(self._queue)))]
        skipped: list[str] = []
        for uuid, done in self._write(some, events.carry_out, LINES).items():
            if isinstance(done, BaseException):
                self._after_error(uuid, done)
            elif done == SKIPPED:
                skipped.append(uuid)
            elif done:
                self._progress += done
                self._pauses.pop(uuid, None)
                self._queue.append(uuid)
            else:
                self._idle[uuid] = self._progress
        self._queue.extendleft(reversed(skipped))

    def _wake_idle(self) -> bool:
        """If a lease made progress, queue again the leases that made none. The hosts that they need
        may be free now. Return whether any lease was queued.
        """
        if all(seen == self._progress for seen in self._idle.values()):
            return False
        with self._store.read() as tx:
            found = events.due(tx, self._clock())
        # Drop leases whose events were completed.
        self._idle = {uuid: self._idle[uuid] for uuid in found if uuid in self._idle}
        woken = [uuid for uuid, seen in self._idle.items() if seen < self._progress]
        self._queue.extend(woken)
        for uuid in woken:
            del self._idle[uuid]
        return bool(woken)

    def _pause_idle(self) -> None:
        for uuid in self._idle:
            self._pause(uuid, WAIT_FIRST_S, WAIT_MAX_S)
        self._idle.clear()

    def _pause(self, uuid: str, first_s: float, most_s: float) -> None:
        last = self._pauses.get(uuid)
        length_s = first_s if last is None else min(2 * last.length_s, most_s)
        self._pauses[uuid] = _Pause(length_s, self._clock() + timedelta(seconds=length_s))

    def _write(self, uuids: Sequence[str], act: Act, lines: int) -> Mapping[str, Answer]:
        """Call ``act`` for each of these leases, in as few commits as possible. Return the answers.

        If the process has lost its turn, this method does nothing, and forgets the queue and the
        pauses.
        """
        now = self._clock()
        load = _Load(now, act, self._context())
        keep = Write(
            partial(periodic.hold_turn, name=TASK, mine=self._turn, lapse_s=TURN_S, now=now)
        )
        acts = [Write(partial(load.step, uuid=each), lines) for each in uuids]
        is_ours, *answers = self._writer.submit_all_and_wait([keep, *acts], TIMEOUT_S)
        if is_ours is True:
            self._turn = now
            return dict(zip(uuids, answers, strict=True))
        self._queue.clear()
        self._idle.clear()
        self._pauses.clear()
        if isinstance(is_ours, BaseException):
            raise is_ours
        return {}

    # -- errors ----------------------------------------------------------------------------

    def _after_error(self, uuid: str, error: BaseException) -> None:
        self._pause(uuid, FAILED_FIRST_S, FAILED_MAX_S)
        if isinstance(error, Unavailable | ConcurrentUpdate):
            LOG.warning("lease_event_delayed", lease_id=uuid, reason=str(error))
            return
        record = Write(partial(events.record_failure, uuid=uuid, context=self._context()))
        is_last = self._writer.submit_and_wait(record, TIMEOUT_S)
        metrics.LEASE_EVENT_FAILURES.labels("given_up" if is_last else "retried").inc()
        LOG.error("lease_event_failed", lease_id=uuid, given_up=is_last, exc_info=error)
