"""Carry out boots and decisions in the writer thread, with the only host table of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import structlog

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import Invalid, PluginFailed, Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, Leasing, Scheduling
from innkeeper.scheduling import reasons
from innkeeper.snapshot.follower import Follower
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import dry_run, entry_batches, plugins
from innkeeper.systems.compute.boot.boot import boot_together, plan_ahead
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.drivers import NO_LEASING, Schedulers, rules_of
from innkeeper.systems.compute.boot.dry_run import Explained, Question
from innkeeper.systems.compute.boot.entries import EntryStale, EntryUsed
from innkeeper.systems.compute.boot.entry_batches import Outcomes
from innkeeper.systems.compute.boot.plans_ahead import PlansAhead
from innkeeper.systems.compute.boot.recordings import Keep, Recorder

LOG = structlog.get_logger("innkeeper.compute")
T = TypeVar("T")


class BootExecutor:
    """Implements :class:`innkeeper.engine.executor.Executor`.

    Only one thread at a time may use an executor. :meth:`plan_ahead` plans boots before their
    transaction begins. :meth:`boot` uses these plans. The other methods that use the host table
    undo the plans first.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        computing: Computing,
        keep: Keep | None = None,
        leasing: Leasing = NO_LEASING,
    ) -> None:
        schedulers = Schedulers(scheduling)
        self.follower = Follower(with_servers=schedulers.default.pipeline.needs_servers)
        recorder = Recorder(scheduling, schedulers, keep)
        self._context = DecisionContext(
            self.follower,
            schedulers,
            scheduling,
            computing,
            recorder,
            rules_of(scheduling, leasing),
        )
        self._ahead = PlansAhead(self._context)
        self.follower.before_edit = self._ahead.undo

    def load(self, tx: Tx) -> None:
        """Read the host table from the store."""
        self._ahead.undo()
        self.follower.load(tx)

    def begin(self, tx: Tx) -> None:
        """Prepare the host table for a new transaction."""
        self.follower.begin(tx)

    def boot(self, tx: Tx, requests: Sequence[BootRequest]) -> list[Booted | Refusal]:
        """Decide on all requests, write their servers, and return one outcome for each request.

        If several requests have the same build plan entry, only one of them is booted. If this boot
        succeeds, the other requests get :class:`EntryUsed`. If this boot is refused, the other
        requests get the same refusal.
        """
        self._catch_up(tx, requests[0].now)
        if all(each.destination is None for each in requests):
            outcomes = boot_together(tx, self._context, requests, self._ahead)
        else:
            outcomes = self._boot_entries(tx, requests)
        for request, outcome in zip(requests, outcomes, strict=True):
            _log(request, outcome)
        return outcomes

    @property
    def may_plan_ahead(self) -> bool:
        """Whether the settings allow this executor to plan boots ahead."""
        return self._ahead.is_possible

    def plan_ahead(self, request: BootRequest) -> bool:
        """Plan a boot before its transaction, after all boots that were planned ahead so far.

        The table must show the last transaction, which may still be uncommitted. Returns False if
        the boot cannot be planned ahead. After False, the caller must not plan later requests
        ahead, because the host table lacks the amounts of this boot.
        """
        return plan_ahead(self._context, request, self._ahead)

    def plans_ahead(self) -> tuple[int, int]:
        """Return how many plans made ahead were used so far, and how many were undone."""
        return self._ahead.used, self._ahead.undone

    def boot_entries(self, tx: Tx, request: BootRequest) -> Outcomes:
        """Boot the servers of a zone parent's request, and return the outcome of each server.

        If the request has no build plan entries, this zone chooses the hosts. The result then lacks
        the servers that get no host.
        """
        self._ahead.undo()
        self._catch_up(tx, request.now)
        if not request.entries:
            (made,) = boot_together(tx, self._context, [request], self._ahead)
            placed = made.server_ids if isinstance(made, Booted) else ()
            return {each: Booted(request.batch_id, (each,)) for each in placed}
        outcomes = entry_batches.boot_entries(tx, self._context, request)
        left = [each for each in request.entries if each.server_id not in outcomes]
        if left:
            alone = [entry_batches.alone(request, each) for each in left]
            answers = self._boot_entries(tx, alone)
            outcomes |= {e.server_id: answer for e, answer in zip(left, answers, strict=True)}
            for part, answer in zip(alone, answers, strict=True):
                _log(part, answer)
        return outcomes

    def _boot_entries(self, tx: Tx, requests: Sequence[BootRequest]) -> list[Booted | Refusal]:
        outcomes: dict[int, Booted | Refusal] = {}
        waiting: Sequence[int] = range(len(requests))
        while waiting:
            first = _first_of_each_entry(requests, waiting)
            answers = boot_together(
                tx, self._context, [requests[i] for i in first.values()], self._ahead
            )
            outcomes |= zip(first.values(), answers, strict=True)
            # If the first request with an entry is Invalid, the next request with this entry is
            # tried. The entry may be valid although the request has an error, such as an unknown
            # key pair.
            decided = {ids for ids, i in first.items() if not isinstance(outcomes[i], Invalid)}
            left = [i for i in waiting if i not in outcomes]
            for i in left:
                if requests[i].server_ids in decided:
                    outcomes[i] = _of_repeated(outcomes[first[requests[i].server_ids]])
            waiting = [i for i in left if i not in outcomes]
        return [outcomes[i] for i in range(len(requests))]

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """Return the outcome of a request that an earlier attempt committed, or ``None``.

        If the connection breaks during a commit, the commit may have succeeded despite the error.
        Server ids are chosen before the first attempt, so rows with these ids show that an attempt
        succeeded.
        """
        known = servers.ever_known(tx, request.server_ids)
        server_ids = tuple(each for each in request.server_ids if each in known)
        if not server_ids:
            return None
        # All servers of a request are written together, so the first represents all of them.
        first = servers.by_uuid(tx, server_ids[0], is_deleted_wanted=True)
        assert first is not None, "it is known"
        if request.destination is not None and first.request_id != request.request_id:
            # The server belongs to another request with the same entry, and thus the same id.
            return None
        is_failed = first.status == Status.ERROR and first.fault is not None
        fault = first.fault["message"] if is_failed and first.fault is not None else None
        return Booted(first.batch_id, server_ids, fault)

    def explain(self, tx: Tx, question: Question) -> Explained:
        """Decide without writing, and explain the decision. Raises the same refusals as a boot."""
        self._ahead.undo()
        self._catch_up(tx, question.request.now)
        with _failures_logged():
            return dry_run.explain(tx, self._context, question)

    def decide(self, tx: Tx, work: Callable[[Tx, DecisionContext], T], now: datetime) -> T:
        """Call ``work`` with an up-to-date decision context. Return the result of ``work``.

        The host table of the context shows what ``tx`` sees. ``work`` must not change this table.
        If ``work`` writes to the database, the next decision sees the changes.
        """
        self._ahead.undo()
        self._catch_up(tx, now)
        with _failures_logged():
            return work(tx, self._context)

    def follow(self, tx: Tx) -> None:
        """Bring the host table to the state that ``tx`` sees."""
        self._ahead.undo()
        self.follower.catch_up(tx)

    def forget(self) -> None:
        """Undo the changes of the host table by the present transaction, which is rolled back."""
        # The plans made ahead assume these changes, so the plans are undone first.
        self._ahead.undo()
        self.follower.forget()

    def _catch_up(self, tx: Tx, now: datetime) -> None:
        # A claim checks only that amounts are free. A claim would not detect that another process
        # disabled a host, moved the host to another availability zone, or freed capacity on the
        # host.
        self.follower.catch_up(tx)
        if self.follower.table.host_count:
            # Most zones with child zones have no hosts, so they have no heartbeats to read.
            self.follower.read_heartbeats(tx, now)


def _first_of_each_entry(
    requests: Sequence[BootRequest], places: Sequence[int]
) -> dict[tuple[ServerId, ...], int]:
    """For each build plan entry, return the index of the first request with this entry.

    The key is the request's server ids, because requests with the same entry have the same server
    ids. Requests without an entry never share server ids.
    """
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
        # Only operators read the log. Operators may know how many hosts are dedicated.
        fault=outcome.counted_fault or outcome.fault,
        **details,
    )
