"""Place servers in a tree of zones, as if the zones asked each other over HTTP.

A zone plans a request on its own hosts, and asks its child zones for their offers. An *offer* is
one server on one host, with a weight. The zone applies the child's offset and scale to the weights
of the child's offers, merges all offers, and keeps the best. The root presents each offer to the
zone that owns the host. This zone claims the host. If the host no longer passes the filters, the
zone refuses the offer as *stale*, and the next offer is used.

Always true: only hosts that pass the filters on the real table are claimed. With only one zone, the
result is the plan of this zone. A zone's view may differ from the present state, because the view
is ``lag_s`` seconds old.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.scheduling.simulation.fleets import HostGroup, table_of
from innkeeper.scheduling.simulation.workload import Codes, Workload
from innkeeper.scheduling.simulation.zone_trees import SimulatedTree, groups_at, owners_of
from innkeeper.snapshot.columns import HostTable

LATE_TURNS = 2**48
"""The turn number of the first draw about late answers. Other draws use lower turn numbers."""
LATE_STEPS = 2**32

BY_WEIGHT, IN_TURN = "by-weight", "in-turn"
MERGES = (BY_WEIGHT, IN_TURN)
"""The ways to merge offers. ``by-weight`` sorts all offers by weight. ``in-turn`` compares only the
next offer of each zone. The offers of a zone then stay in the order of its plan."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of decisions in a tree.

    Zones see the state of ``lag_s`` seconds ago. The answer of a child zone is late with the
    probability ``late``. A late answer is ignored. If an offer was stale and some servers have no
    host, all zones are asked again. There are at most ``attempts_max`` attempts.
    """

    lag_s: float = 0.0
    late: float = 0.0
    merge: str = BY_WEIGHT
    attempts_max: int = 10


class TreeOffer(NamedTuple):
    """One server on a host of the zone with the number ``zone``. A higher weight is better."""

    weight: float
    zone: int
    entry: Entry


class _Edit(NamedTuple):
    due_s: float
    is_taken: bool
    spec: RequestSpec
    host: HostIndex


class ZoneView:
    """The hosts of one zone, as its scheduler sees them. ``rows`` are their rows in the fleet."""

    def __init__(self, table: HostTable, rows: Codes, scheduler: Scheduler) -> None:
        self.table, self.rows, self.scheduler = table, rows, scheduler
        self._edits: deque[_Edit] = deque()

    def plan(self, spec: RequestSpec) -> BuildPlan:
        """Plan a request, but take no amounts."""
        plan = self.scheduler.plan(self.table, spec)
        depletion.undo(self.table, spec, plan)
        return plan

    def edit(self, edit: _Edit) -> None:
        """Schedule a change of the view."""
        self._edits.append(edit)

    def come_to(self, moment_s: float) -> None:
        """Apply all changes that are due."""
        while self._edits and self._edits[0].due_s <= moment_s:
            self._apply(self._edits.popleft())

    def _apply(self, edit: _Edit) -> None:
        table, entry = self.table, _entry(self.table, edit.host, 0.0)
        # Builds take no time, so servers do not count as busy.
        if edit.is_taken:
            depletion.take(table, edit.spec, entry)
        if table.knows_servers:
            table.busy_counts[edit.host] += -1 if edit.is_taken else 1
        if not edit.is_taken:
            depletion.give_back(table, edit.spec, entry)


def _entry(table: HostTable, index: HostIndex, weight: float) -> Entry:
    return Entry(index, ProviderId(int(table.provider_ids[index])), table.names[index], weight)


@dataclass(slots=True)
class CallCounts:
    """Counts the messages between the zones of a tree. A call is a request with its answer."""

    boots: int = 0
    selects: int = 0
    late: int = 0
    offers: int = 0
    """The number of offers in all answers. An offer is counted again on every level that it passes.
    """
    creates: int = 0
    """The number of calls that present offers to the owners of the hosts. A zone calls each child
    once, with all offers of the child and of the zones below the child."""
    stale: int = 0
    attempts: int = 0
    plans: int = 0
    plan_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ZoneFigures:
    """The results of one zone. ``used`` is the mean used share of the zone's hosts, by class."""

    name: str
    hosts: int
    placed: int
    stale: int
    used: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TreeFigures:
    """The results for a tree, in addition to the results for the fleet.

    Only zones with hosts are listed.
    """

    calls: CallCounts
    zones: tuple[ZoneFigures, ...]


class TreePlanner:
    """Places requests in a tree of zones; see :class:`.replay.ReplayWatcher`.

    ``fleet`` is the real table with the hosts of all zones. ``schedulers`` has one scheduler for
    every zone, in preorder.
    """

    def __init__(
        self,
        tree: SimulatedTree,
        groups: Sequence[HostGroup],
        workload: Workload,
        fleet: HostTable,
        schedulers: Sequence[Scheduler],
        options: TreeOptions,
        clock: Callable[[], float],
    ) -> None:
        self._zones = list(tree.root.preorder())
        self._is_alone = tree.is_alone
        self._fleet, self._options, self._clock = fleet, options, clock
        self._owners = owners_of(tree, groups)
        self._local = np.zeros_like(self._owners)
        self._views: list[ZoneView | None] = []
        for number, scheduler in enumerate(schedulers):
            self._views.append(self._view(number, groups, workload, scheduler))
        numbers = {id(zone): number for number, zone in enumerate(self._zones)}
        self._children = [[numbers[id(each)] for each in zone.zones] for zone in self._zones]
        self._parents = [0] * len(self._zones)
        for number, children in enumerate(self._children):
            for child in children:
                self._parents[child] = number
        self._now_s = -np.inf
        self.calls = CallCounts()
        self._placed = [0] * len(self._zones)
        self._stale = [0] * len(self._zones)
        self._samples = 0
        self._used = {name: np.zeros(len(self._zones)) for name in fleet.free}

    def _view(
        self, number: int, groups: Sequence[HostGroup], workload: Workload, scheduler: Scheduler
    ) -> ZoneView | None:
        rows = np.flatnonzero(self._owners == number)
        if not rows.shape[0]:
            return None
        self._local[rows] = np.arange(rows.shape[0])
        table = table_of(groups_at(groups, rows), workload)
        table.knows_servers = scheduler.pipeline.needs_servers
        return ZoneView(table, rows, scheduler)

    # -- planning ------------------------------------------------------------------------------

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Place the servers of a request, and take their amounts from the fleet."""
        assert hosts is self._fleet
        if not self._is_alone:
            spec = replace(spec, has_fixed_scales=True)
        self.calls.boots += 1
        entries: list[Entry] = []
        for _ in range(self._options.attempts_max):
            self.calls.attempts += 1
            placed = len(entries)
            asked = replace(spec, count=spec.count - placed, turn=spec.turn + placed)
            is_stale = self._claim_all(asked, self._offers(0, asked), entries)
            if len(entries) == spec.count or not is_stale:
                break
        return BuildPlan(tuple(entries), {}, hosts.host_count, len(entries), ())

    def _offers(self, number: int, spec: RequestSpec) -> list[TreeOffer]:
        found = [self._own(number, spec)]
        for child in self._children[number]:
            self.calls.selects += 1
            offers = self._offers(child, spec)
            if self._is_late(spec):
                self.calls.late += 1
                continue
            self.calls.offers += len(offers)
            offset, scale = self._zones[child].weight_offset, self._zones[child].weight_scale
            found.append([each._replace(weight=offset + scale * each.weight) for each in offers])
        if len(found) == 1:
            return found[0]
        merge = merged_in_turn if self._options.merge == IN_TURN else merged_by_weight
        return merge(found, spec.count)

    def _own(self, number: int, spec: RequestSpec) -> list[TreeOffer]:
        view = self._views[number]
        if view is None:
            return []
        view.come_to(self._now_s)
        before = self._clock()
        plan = view.plan(spec)
        self.calls.plan_s += self._clock() - before
        self.calls.plans += 1
        return [TreeOffer(entry.weight, number, entry) for entry in plan.entries]

    def _is_late(self, spec: RequestSpec) -> bool:
        if not self._options.late:
            return False
        drawn = draw(spec.seed, LATE_TURNS + self.calls.selects, LATE_STEPS)
        return drawn < self._options.late * LATE_STEPS

    def _claim_all(
        self, spec: RequestSpec, offers: Sequence[TreeOffer], entries: list[Entry]
    ) -> bool:
        """Claim the offers in order, and add their entries. Return whether any offer was stale."""
        is_stale = False
        self.calls.creates += self._called({offer.zone for offer in offers})
        for offer in offers:
            view = self._views[offer.zone]
            assert view is not None
            index = HostIndex(int(view.rows[offer.entry.index]))
            if not self._passes(view, spec, index):
                is_stale = True
                self.calls.stale += 1
                self._stale[offer.zone] += 1
                # A zone that refuses an offer updates its view.
                view.come_to(np.inf)
                continue
            entry = _entry(self._fleet, index, offer.weight)
            depletion.take(self._fleet, spec, entry)
            self._edit(spec, index, is_taken=True)
            self._placed[offer.zone] += 1
            entries.append(entry)
        return is_stale

    def _called(self, zones: set[int]) -> int:
        """Return the number of calls to reach these zones, including calls to zones above."""
        called: set[int] = set()
        for number in zones:
            at = number
            while at and at not in called:
                called.add(at)
                at = self._parents[at]
        return len(called)

    def _passes(self, view: ZoneView, spec: RequestSpec, index: HostIndex) -> bool:
        if not self._options.lag_s:
            # Without a lag, the zones see the present state, so their offers are never stale.
            return True
        row = slice(index, index + 1)
        masks = (each.mask(self._fleet, spec, row) for each in view.scheduler.pipeline.filters)
        return all(mask is None or bool(mask[0]) for mask in masks)

    def _edit(self, spec: RequestSpec, index: HostIndex, *, is_taken: bool) -> None:
        view = self._views[self._owners[index]]
        assert view is not None
        due_s = self._now_s + self._options.lag_s
        view.edit(_Edit(due_s, is_taken, spec, HostIndex(int(self._local[index]))))
        if not self._options.lag_s:
            view.come_to(np.inf)

    # -- watching the replay ---------------------------------------------------------------------

    def come_to(self, moment_s: float) -> None:
        """Set the time in the trace."""
        self._now_s = moment_s

    def freed(self, spec: RequestSpec, entry: Entry) -> None:
        """Give back the amounts of a server that left its host."""
        self._edit(spec, entry.index, is_taken=False)

    def look(self) -> None:
        """Take a sample of the usage of each zone."""
        self._samples += 1
        for name in self._used:
            used = self._fleet.used[name]
            self._used[name] += np.bincount(self._owners, weights=used, minlength=len(self._zones))

    def figures(self) -> TreeFigures:
        """Return the results so far."""
        zones = [
            ZoneFigures(
                zone.name,
                int(view.rows.shape[0]),
                self._placed[number],
                self._stale[number],
                {name: self._mean_used(name, number, view) for name in self._used},
            )
            for number, (zone, view) in enumerate(zip(self._zones, self._views, strict=True))
            if view is not None
        ]
        return TreeFigures(self.calls, tuple(zones))

    def _mean_used(self, name: str, number: int, view: ZoneView) -> float:
        capacity = (self._fleet.free[name] + self._fleet.used[name])[view.rows].sum()
        used = self._used[name][number] / max(1, self._samples)
        return float(used / capacity) if capacity else 0.0


def merged_by_weight(found: Sequence[Sequence[TreeOffer]], count: int) -> list[TreeOffer]:
    """Sort all offers by weight, and keep the best. Of equal offers, earlier zones come first."""
    offers = [offer for offers in found for offer in offers]
    return sorted(offers, key=lambda offer: -offer.weight)[:count]


def merged_in_turn(found: Sequence[Sequence[TreeOffer]], count: int) -> list[TreeOffer]:
    """Repeatedly take the best of the zones' next offers.

    Of equal offers, earlier zones come first.

    An offer of a zone assumes that the zone's earlier offers are used. With a policy that packs
    servers, later offers may have higher weights than earlier offers.
    """
    places = [0] * len(found)
    merged: list[TreeOffer] = []
    while len(merged) < count:
        left = [at for at, offers in enumerate(found) if places[at] < len(offers)]
        if not left:
            break
        best = max(left, key=lambda at: found[at][places[at]].weight)
        merged.append(found[best][places[best]])
        places[best] += 1
    return merged
