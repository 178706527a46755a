"""The writer thread's desk: the host table, the pipeline, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import structlog

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import PluginFailed, Refusal
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling import reasons
from innkeeper.snapshot.follower import Follower
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import entries, explanations, plugins, recovery
from innkeeper.systems.compute.boot.boot import boot_together
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.drivers import Schedulers, rules_of
from innkeeper.systems.compute.boot.explanations import Question, Told
from innkeeper.systems.compute.boot.recordings import Keep, Recorder

LOG = structlog.get_logger("innkeeper.compute")
T = TypeVar("T")


class BootExecutor:
    """See :class:`innkeeper.engine.batches.Executor`. Used by one thread."""

    def __init__(
        self, scheduling: Scheduling, computing: Computing, keep: Keep | None = None
    ) -> None:
        schedulers = Schedulers(scheduling)
        needs_servers = schedulers.default.pipeline.needs_servers
        self.follower = Follower(with_servers=needs_servers)
        recorder = Recorder(scheduling, schedulers, keep)
        self._context = DecisionContext(
            self.follower, schedulers, scheduling, computing, recorder, rules_of(scheduling)
        )

    def load(self, tx: Tx) -> None:
        """Read the host table from the store."""
        self.follower.load(tx)

    def begin(self, tx: Tx) -> None:
        """Start the work of one transaction."""
        self.follower.begin(tx)

    def boot(self, tx: Tx, requests: Sequence[BootRequest]) -> list[Booted | Refusal]:
        """Decide on and write all requests."""
        self.follower.read_heartbeats(tx, requests[0].now)
        # A claim proves amounts. That a host was closed, moved to another zone or given room
        # back by another process, no claim would notice.
        self.follower.catch_up(tx)
        outcomes = entries.each_once(requests, lambda each: boot_together(tx, self._context, each))
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Booted) and outcome.fault is not None:
                _tell(request, outcome)
            elif isinstance(outcome, entries.Stale):
                LOG.warning("plan_entry_stale", request_id=request.request_id, why=outcome.why)
        return outcomes

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """How a request ended that an earlier commit has written down; ``None`` if none did."""
        return recovery.already_booted(tx, request)

    def explain(self, tx: Tx, question: Question) -> Told:
        """Decide without writing, and tell why; raises what booting would refuse with."""
        self.follower.read_heartbeats(tx, question.request.now)
        self.follower.catch_up(tx)
        with _failures_logged():
            return explanations.answer(tx, self._context, question)

    def decide(self, tx: Tx, work: Callable[[Tx, DecisionContext], T], now: datetime) -> T:
        """Do work that decides, with the host table as ``tx`` sees it.

        The work leaves the table as it is, and what it writes is read by the next decision.
        """
        self.follower.read_heartbeats(tx, now)
        self.follower.catch_up(tx)
        with _failures_logged():
            return work(tx, self._context)

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to what ``tx`` sees."""
        self.follower.catch_up(tx)

    def forget(self) -> None:
        """The transaction did not come to be."""
        self.follower.forget()


@contextmanager
def _failures_logged() -> Iterator[None]:
    try:
        yield
    except PluginFailed as failure:
        plugins.log(failure)
        raise


def _tell(request: BootRequest, outcome: Booted) -> None:
    told: dict[str, object] = {}
    if outcome.refused is not None:
        told = {
            "removed": {
                each.filter_name: each.removed for each in outcome.refused.tallies if each.removed
            },
            "nearest": reasons.near_misses(outcome.refused),
        }
    LOG.warning(
        "no_valid_host",
        request_id=request.request_id,
        batch_id=outcome.batch_id,
        # The log is the operator's, who may know how many hosts are dedicated.
        fault=outcome.counted_fault or outcome.fault,
        **told,
    )
