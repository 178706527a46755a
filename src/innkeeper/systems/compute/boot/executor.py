"""What the writer thread does with boots and decisions, on the one host table of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import structlog

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import Invalid, PluginFailed, Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling import reasons
from innkeeper.snapshot.follower import Follower
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import dry_run, plugins
from innkeeper.systems.compute.boot.boot import boot_together
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.drivers import Schedulers, rules_of
from innkeeper.systems.compute.boot.dry_run import Explained, Question
from innkeeper.systems.compute.boot.entries import EntryStale, EntryUsed
from innkeeper.systems.compute.boot.recordings import Keep, Recorder

LOG = structlog.get_logger("innkeeper.compute")
T = TypeVar("T")


class BootExecutor:
    """See :class:`innkeeper.engine.batches.Executor`. Used by one thread."""

    def __init__(
        self, scheduling: Scheduling, computing: Computing, keep: Keep | None = None
    ) -> None:
        schedulers = Schedulers(scheduling)
        self.follower = Follower(with_servers=schedulers.default.pipeline.needs_servers)
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
        """Decide on and write all requests, with one outcome for each.

        Of requests with the same entry of a build plan one is booted, and the others get its
        refusal or :class:`EntryUsed`: they share the commit, so the rows cannot tell them.
        """
        self._catch_up(tx, requests[0].now)
        outcomes: dict[int, Booted | Refusal] = {}
        waiting: Sequence[int] = range(len(requests))
        while waiting:
            first = _first_of_each_entry(requests, waiting)
            answers = boot_together(tx, self._context, [requests[i] for i in first.values()])
            outcomes |= zip(first.values(), answers, strict=True)
            # An Invalid request says nothing about its entry, for it may name a wrong key pair:
            # then the next request with that entry is tried.
            decided = {ids for ids, i in first.items() if not isinstance(outcomes[i], Invalid)}
            left = [i for i in waiting if i not in outcomes]
            for i in left:
                if requests[i].server_ids in decided:
                    outcomes[i] = _of_repeated(outcomes[first[requests[i].server_ids]])
            waiting = [i for i in left if i not in outcomes]
        for i, request in enumerate(requests):
            _log(request, outcomes[i])
        return [outcomes[i] for i in range(len(requests))]

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """The outcome of a request that an earlier commit has written, if one has.

        A commit that raises may have happened: the connection can break before its answer.
        Server ids are drawn before the first attempt, so the rows tell.
        """
        known = servers.ever_known(tx, request.server_ids)
        server_ids = tuple(each for each in request.server_ids if each in known)
        if not server_ids:
            return None
        # They are written together, so what holds for one holds for all of them.
        first = servers.by_uuid(tx, server_ids[0], is_deleted_wanted=True)
        assert first is not None, "it is known"
        if request.destination is not None and first.request_id != request.request_id:
            # Another request with the same entry, and so with the same server id, was faster.
            return None
        is_failed = first.status == Status.ERROR and first.fault is not None
        fault = first.fault["message"] if is_failed and first.fault is not None else None
        return Booted(first.batch_id, server_ids, fault)

    def explain(self, tx: Tx, question: Question) -> Explained:
        """Decide without writing, and explain; raises what booting would refuse with."""
        self._catch_up(tx, question.request.now)
        with _failures_logged():
            return dry_run.explain(tx, self._context, question)

    def decide(self, tx: Tx, work: Callable[[Tx, DecisionContext], T], now: datetime) -> T:
        """Do work that decides, with the host table as ``tx`` sees it.

        The work leaves the table unchanged; the next decision reads what it wrote.
        """
        self._catch_up(tx, now)
        with _failures_logged():
            return work(tx, self._context)

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to what ``tx`` sees."""
        self.follower.catch_up(tx)

    def forget(self) -> None:
        """Undo what was done to the host table for a transaction that was rolled back."""
        self.follower.forget()

    def _catch_up(self, tx: Tx, now: datetime) -> None:
        # A claim proves amounts alone. It would not notice a host that another process has
        # disabled, moved to another availability zone, or given capacity back to.
        self.follower.read_heartbeats(tx, now)
        self.follower.catch_up(tx)


def _first_of_each_entry(
    requests: Sequence[BootRequest], places: Sequence[int]
) -> dict[tuple[ServerId, ...], int]:
    """The first request of each build plan entry; requests without one have ids of their own."""
    first: dict[tuple[ServerId, ...], int] = {}
    for place in places:
        first.setdefault(requests[place].server_ids, place)
    return first


def _of_repeated(outcome: Booted | Refusal) -> Refusal:
    return outcome if isinstance(outcome, Refusal) else EntryUsed(outcome.server_ids[0])


@contextmanager
def _failures_logged() -> Iterator[None]:
    try:
        yield
    except PluginFailed as failure:
        plugins.log(failure)
        raise


def _log(request: BootRequest, outcome: Booted | Refusal) -> None:
    if isinstance(outcome, EntryStale):
        LOG.warning("plan_entry_stale", request_id=request.request_id, why=outcome.why)
    if not isinstance(outcome, Booted) or outcome.fault is None:
        return
    details: dict[str, object] = {}
    if outcome.refused is not None:
        removed = {each.filter_name: each.removed for each in outcome.refused.tallies}
        details = {
            "removed": {name: count for name, count in removed.items() if count},
            "nearest": reasons.near_misses(outcome.refused),
        }
    LOG.warning(
        "no_valid_host",
        request_id=request.request_id,
        batch_id=outcome.batch_id,
        # The operator reads the log, and may know how many hosts are dedicated.
        fault=outcome.counted_fault or outcome.fault,
        **details,
    )
