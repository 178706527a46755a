"""Plans waiting boots on the host table, while earlier boots are written to the database.

Always true: a plan made ahead is used only if the boot would get the same plan now. For this, the
request spec, the host table, and the earlier decisions must be the same as before. All other plans
made ahead are undone before anything else reads or edits the table. So planning ahead changes no
outcome.

Planning ahead reads nothing from the database. The plan uses the spec of an earlier request that
asked for the same. Later, the transaction of the boot resolves the request as usual, and compares
the two specs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.filters import compute
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.decisions import DecisionRecord
from innkeeper.systems.compute.boot.resolved_requests import RequestKey, ResolvedRequest, key_of

RESOLVED_MAX = 256
"""The maximum number of resolved requests that are kept. Each request needs less than a kilobyte.
"""


class PlanAhead(msgspec.Struct, frozen=True):
    """The plan of one request, the record of the decision, and the decision's input.

    ``hearing`` has the times of heartbeats and reports in the table when the plan was made. If
    ``is_placed`` is True, the plan's amounts are subtracted from the table, and the generations of
    the plan's providers are advanced.
    """

    spec: RequestSpec
    hearing: object
    plan: BuildPlan
    record: DecisionRecord
    is_placed: bool


class PlansAhead:
    """The plans made ahead that were neither used nor undone yet, oldest first.

    ``used`` and ``undone`` count the other plans. If ``is_possible`` is False, no plan is made
    ahead.
    """

    def __init__(self, context: DecisionContext) -> None:
        self._context = context
        # A decision that a recorder has kept cannot be undone. The same holds for data that a
        # plug-in may keep.
        self.is_possible = not (context.recorder.is_on or context.schedulers.has_plugins)
        self._waiting: deque[PlanAhead] = deque()
        self._resolved: dict[RequestKey, ResolvedRequest] = {}
        self.used = 0
        self.undone = 0

    def learn(self, known: Mapping[RequestKey, ResolvedRequest]) -> None:
        """Remember resolved requests, for use in :meth:`expected`."""
        if not self.is_possible:
            return
        self._resolved.update(known)
        while len(self._resolved) > RESOLVED_MAX:
            # Iteration begins with the oldest item.
            del self._resolved[next(iter(self._resolved))]

    def expected(self, request: BootRequest) -> ResolvedRequest | None:
        """Resolve a request like an earlier request that asked for the same.

        Return ``None`` if no such request is remembered.
        """
        asked = key_of(request)
        known = None if asked is None else self._resolved.get(asked)
        if known is None:
            return None
        return known.like(request, request.count_max)

    def add(
        self, expected: ResolvedRequest, plan: BuildPlan, record: DecisionRecord, *, is_placed: bool
    ) -> None:
        """Add the plan that was just made for a request. See :class:`PlanAhead`."""
        spec = expected.spec
        hearing = _hearing(self._table, spec)
        made = PlanAhead(spec, hearing, plan, record, is_placed)
        self._waiting.append(made)

    def take(self, resolved: ResolvedRequest) -> PlanAhead | None:
        """Return the first waiting plan if it was made for this request, and count it as used.

        If the first plan was made for another request or from other input, undo all plans made
        ahead, and return ``None``.
        """
        if not self._waiting:
            return None
        first = self._waiting[0]
        if not self._is_of(first, resolved):
            self.undo()
            return None
        self.used += 1
        return self._waiting.popleft()

    def undo(self) -> None:
        """Undo all plans made ahead that were not used, and restore the table."""
        # In reverse order, each undo restores the generations that the plan before it has seen.
        while self._waiting:
            made = self._waiting.pop()
            self.undone += 1
            if made.is_placed:
                depletion.undo(self._table, made.spec, made.plan)
                self._table.expect_no_claim(made.plan.seen)

    @property
    def _table(self) -> HostTable:
        return self._context.follower.table

    def _is_of(self, made: PlanAhead, resolved: ResolvedRequest) -> bool:
        spec = resolved.spec
        return (
            # The specs include the seed, so the specs of different requests are never equal.
            made.spec == spec
            # The order of the resource classes affects the random choice among pools. The
            # comparison of specs ignores this order.
            and list(made.spec.amounts) == list(spec.amounts)
            and made.hearing == _hearing(self._table, spec)
        )


def _hearing(table: HostTable, spec: RequestSpec) -> object:
    """Return a value that changes when the request would see new heartbeats or reports."""
    return compute.stamp(table, spec), freshness.stamp(table, spec)
