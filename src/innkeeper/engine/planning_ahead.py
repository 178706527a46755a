"""Plans the next boots in a thread of its own, while the writer thread waits for a flush.

Always true: at any time, only one of the two threads uses the host table, and takes or ranks
commands. The writer thread hands over the table and the queue as its last step before a commit. It
takes both back before it uses one of them again. A plan writes nothing. A client is still answered
only after the commit of its boot.

Nothing is handed over if no boot waits, if the last flush was quick, or if the settings rule out
plans. So a single boot is not delayed, and threads are not switched without a gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import structlog

from innkeeper.engine import metrics
from innkeeper.engine.command_queue import CommandQueue
from innkeeper.engine.executor import Executor

FLUSH_MIN_S = 0.001
"""During a flush that takes less time than this, only a few plans could be made. They would not be
worth the switches between the threads."""
LOG = structlog.get_logger("innkeeper.decisions")


class PlannerThread:
    """Plans waiting boots between :meth:`begin` and :meth:`end`, which the writer thread calls.

    At most ``count_max`` boots are planned, with at most ``lines_max`` servers in all. ``clock``
    returns seconds.
    """

    def __init__(
        self,
        waiting: CommandQueue,
        executor: Executor,
        count_max: int,
        lines_max: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._waiting = waiting
        self._executor = executor
        self._limits = count_max, lines_max
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="planner")
        self._work: Future[None] | None = None
        self._is_ending = False
        self._counted = (0, 0)
        self._begun_s: float | None = None
        self._last_flush_s = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether any boot waits and the last flush was slow."""
        is_slow = self._last_flush_s >= FLUSH_MIN_S
        return is_slow and self._waiting.has_boots and self._executor.may_plan_ahead

    def begin(self, *, has_followed: bool) -> None:
        """Hand over the host table and the queue, if a plan is needed and ``has_followed`` is true.

        ``has_followed`` says that the table already shows the batch that is about to be committed.
        """
        self._begun_s = self._clock()
        if has_followed and self.is_needed:
            self._is_ending = False
            self._work = self._threads.submit(self._plan)

    def end(self) -> None:
        """Take back the host table and the queue. Wait for the plan in progress."""
        if self._begun_s is not None:
            # The measured time also includes the sending of answers, which takes a few
            # microseconds.
            self._last_flush_s = self._clock() - self._begun_s
            self._begun_s = None
        if self._work is not None:
            self._is_ending = True
            # No timeout is needed, because this thread would otherwise need the same time for this
            # plan.
            error = self._work.exception()
            self._work = None
            if error is not None:
                # The boot is planned again in its batch, where its client gets the answer.
                LOG.error("planning_ahead_failed", exc_info=error)
        counts = self._executor.plans_ahead()
        if counts != self._counted:
            used, undone = self._counted
            metrics.planned_ahead(used=counts[0] - used, undone=counts[1] - undone)
            self._counted = counts

    def stop(self) -> None:
        """End the thread."""
        self._threads.shutdown(wait=False)

    def _plan(self) -> None:
        planned = 0
        # Boots that arrive during the planning are planned too, after the others.
        while len(boots := self._waiting.next_boots(*self._limits)) > planned:
            for each in boots[planned:]:
                if self._is_ending or not self._executor.plan_ahead(each):
                    return
                planned += 1
