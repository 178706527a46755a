"""The decision thread's desk: the host table, the pipeline, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import structlog

from innkeeper.domain.compute import Booted, BootRequest, Explained
from innkeeper.domain.errors import Refusal
from innkeeper.domain.placing import BuildPlan, Candidate, Entry
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling import ranking, reasons
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.follower import Follower
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import recovery
from innkeeper.systems.compute.boot import boot_together
from innkeeper.systems.compute.drivers import Schedulers, rules_of
from innkeeper.systems.compute.intake import Reception
from innkeeper.systems.compute.means import Means

LOG = structlog.get_logger("innkeeper.compute")
T = TypeVar("T")

BEST_SHOWN = 10
"""Candidates that an explanation names."""


class BootDesk:
    """See :class:`innkeeper.entrypoints.api.decisions.Desk`. Used by one thread."""

    def __init__(self, scheduling: Scheduling, computing: Computing) -> None:
        schedulers = Schedulers(scheduling)
        needs_servers = schedulers.default.pipeline.needs_servers
        self.follower = Follower(with_servers=needs_servers)
        rules = rules_of(scheduling)
        self._means = Means(self.follower, schedulers, scheduling, computing, rules)

    def load(self, tx: Tx) -> None:
        """Read the host table from the store."""
        self.follower.load(tx)

    def begin(self, tx: Tx) -> None:
        """Start the work of one transaction."""
        self.follower.begin(tx)

    def boot(self, tx: Tx, requests: Sequence[BootRequest]) -> list[Booted | Refusal]:
        """Decide on and write all requests."""
        self.follower.hear(tx, requests[0].now)
        # A claim proves amounts. That a host was closed, moved to another zone or given room
        # back by another process, no claim would notice.
        self.follower.catch_up(tx)
        outcomes = boot_together(tx, self._means, requests)
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Booted) and outcome.fault is not None:
                LOG.warning(
                    "no_valid_host",
                    request_id=request.request_id,
                    batch_id=outcome.batch_id,
                    fault=outcome.fault,
                )
        return outcomes

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """How a request ended that an earlier commit has written down; ``None`` if none did."""
        return recovery.already_booted(tx, request)

    def explain(self, tx: Tx, request: BootRequest) -> Explained:
        """Decide without writing, and tell why; raises what booting would refuse with."""
        self.follower.hear(tx, request.now)
        self.follower.catch_up(tx)
        table = self.follower.table
        taken = Reception(tx, self._means, [request]).take(request)
        best = ranking.best(self._means.scheduler.pipeline, table, taken.spec, BEST_SHOWN)
        made = self._means.plan(taken.spec)
        return _explained(table, made, best, request.count_min)

    def decide(self, tx: Tx, work: Callable[[Tx, Means], T], now: datetime) -> T:
        """Do work that decides, with the host table as ``tx`` sees it.

        The work leaves the table as it is, and what it writes is read by the next decision.
        """
        self.follower.hear(tx, now)
        self.follower.catch_up(tx)
        return work(tx, self._means)

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to what ``tx`` sees."""
        self.follower.catch_up(tx)

    def forget(self) -> None:
        """The transaction did not come to be."""
        self.follower.forget()


def _explained(
    table: HostTable, made: BuildPlan, best: Sequence[Candidate], count_min: int
) -> Explained:
    is_placed = len(made.entries) >= count_min
    return Explained(
        hosts=made.hosts,
        removed=tuple((each.filter_name, each.removed, each.reason) for each in made.removals),
        missing=tuple(each.missing for each in made.removals),
        chosen=tuple(
            {"host": each.host, "weight": each.weight, **_pools(table, each)}
            for each in (made.entries if is_placed else ())
        ),
        best=tuple(
            {"host": each.host, "weight": each.weight, "parts": dict(each.parts)}
            for each in best
        ),
        fault=None if is_placed else reasons.sentence(made, count_min),
    )


def _pools(table: HostTable, entry: Entry) -> dict[str, Any]:
    """The pools that lend to a server, by class; nothing where its host gives everything."""
    lending = {each.class_name: table.pools.uuids[each.index] for each in entry.loans}
    return {"pools": lending} if lending else {}
