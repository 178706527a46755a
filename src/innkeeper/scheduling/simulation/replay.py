"""Replay a workload on a host table, with the schedulers of the service.

Always true: apart from durations, the outcome is a function of workload, table, scheduler and
seed. After the last server has left, the table is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec, Rules
from innkeeper.scheduling import depletion
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.simulation.fleets import NOW_S
from innkeeper.scheduling.simulation.measures import Peaks, ReplayOutcome, Sampler
from innkeeper.scheduling.simulation.workload import ServerShape, Workload
from innkeeper.snapshot.columns import HostTable

Planner = Callable[[HostTable, RequestSpec], BuildPlan]
"""A function that plans a request, and takes the plan's amounts from the table."""
Clock = Callable[[], float]
"""A monotonic clock in seconds, for durations."""
Advance = Callable[[int], None]
"""A callback for progress bars. Its argument is the number of servers since the last call."""

SEEDS = 2**63
SAMPLES = 600
"""The number of samples of the fleet. The samples are evenly spaced over the time of a trace."""
ADVANCE_EVERY = 512


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay.

    With ``is_whole``, a request gets all of its servers or none. With ``stops_at_refusal``, the
    replay ends at the first server without a host. With ``has_fixed_scales``, hosts are weighed as
    in a tree of zones.
    """

    seed: int = 0
    rules: Rules = field(default_factory=Rules)
    reference: ServerShape | None = None
    samples: int = SAMPLES
    is_whole: bool = False
    stops_at_refusal: bool = False
    has_fixed_scales: bool = False


class ReplayWatcher(Protocol):
    """A planner of requests that is also notified of the other events in a replay."""

    def come_to(self, moment_s: float) -> None:
        """Set the time in the trace. It never decreases."""

    def freed(self, spec: RequestSpec, entry: Entry) -> None:
        """Handle the departure of a server. The table already has the server's amounts again."""

    def look(self) -> None:
        """Handle the moment of a sample."""


class Replay:
    """The replay of one workload on one fleet by one scheduler."""

    def __init__(
        self,
        workload: Workload,
        table: HostTable,
        planner: Planner,
        options: ReplayOptions,
        clock: Clock,
        watcher: ReplayWatcher | None = None,
    ) -> None:
        self._workload = workload
        self._table = table
        self._planner = planner
        self._options = options
        self._clock = clock
        self._watcher = watcher
        self._placed: dict[int, tuple[RequestSpec, Entry]] = {}
        """The placed servers by number."""
        self._leavings = np.argsort(workload.leavings_s, kind="stable")
        self._left = 0
        reference = options.reference or workload.commonest()
        self._sampler = Sampler(
            table, workload.classes(), self._spec(reference, 0, 0, 1), self._moments()
        )
        self._peaks = Peaks(table, tuple(self._sampler.capacity))

    def _moments(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        first, last = self._workload.arrivals_s[[0, -1]]
        return np.linspace(first, last, max(2, self._options.samples))[1:]

    def _spec(self, shape: ServerShape, number: int, project: int, count: int) -> RequestSpec:
        return RequestSpec(
            amounts=shape.amounts,
            project_id=self._workload.projects[project],
            user_id="simulation",
            now_s=NOW_S,
            silence_max_s=np.inf,
            seed=draw(self._options.seed, number, SEEDS),
            count=count,
            comparisons=shape.comparisons,
            rules=self._options.rules,
            has_fixed_scales=self._options.has_fixed_scales,
        )

    def run(self, advance: Advance) -> ReplayOutcome:
        """Replay all arrivals, and all departures until the last arrival."""
        workload = self._workload
        starts = workload.requests()
        requests = starts.shape[0] - 1
        bounds = starts.tolist()
        arrivals = workload.arrivals_s[starts[:-1]].tolist()
        shapes = workload.shape_codes[starts[:-1]].tolist()
        projects = workload.project_codes
        owners = [0] * requests if projects is None else projects[starts[:-1]].tolist()
        placed = np.zeros(len(workload.shapes), dtype=np.int64)
        decision_s = np.zeros(requests)
        refused_at: float | None = None
        reported = done = 0
        for number in range(requests):
            moment, first = arrivals[number], bounds[number]
            self._come_to(moment)
            count = bounds[number + 1] - first
            spec = self._spec(workload.shapes[shapes[number]], number + 1, owners[number], count)
            decision_s[number], found = self._decide(spec, first, moment)
            placed[shapes[number]] += found
            done = number + 1
            if found < count and refused_at is None:
                refused_at = moment
                if self._options.stops_at_refusal:
                    break
            if bounds[done] - reported >= ADVANCE_EVERY:
                advance(bounds[done] - reported)
                reported = bounds[done]
        else:
            # A replay that stopped early takes no samples of the remaining time.
            self._come_to(np.inf)
        advance(bounds[done] - reported)
        return ReplayOutcome(
            hosts=self._table.host_count,
            capacity=self._sampler.capacity,
            requested=np.bincount(
                workload.shape_codes[: bounds[done]], minlength=len(workload.shapes)
            ),
            placed=placed,
            decision_s=decision_s[:done],
            asked=np.diff(starts[: done + 1]),
            samples=self._sampler.samples(),
            peaks=self._peaks.most,
            first_refusal_s=refused_at,
        )

    def _decide(self, spec: RequestSpec, first: int, moment: float) -> tuple[float, int]:
        """Place the servers of a request at ``moment``.

        ``first`` is the number of the first server. Return the duration of the decision in seconds,
        and the number of placed servers.
        """
        if self._watcher is not None:
            self._watcher.come_to(moment)
        before = self._clock()
        entries = self._planner(self._table, spec).entries
        took = self._clock() - before
        if self._options.is_whole and len(entries) < spec.count:
            for entry in reversed(entries):
                self._give_back(spec, entry)
            return took, 0
        for number, entry in enumerate(entries, start=first):
            self._placed[number] = (spec, entry)
            self._peaks.take(spec.amounts)
            self._busy(entry, -1)
        return took, len(entries)

    def _come_to(self, moment: float) -> None:
        """Process departures up to ``moment``, and take the samples that are due.

        A sample that is due at ``moment`` itself is taken after the arrivals at this time.
        """
        while self._sampler.due_s < moment:
            self._leave_until(self._sampler.due_s)
            self._sampler.look(len(self._placed))
            if self._watcher is not None:
                self._watcher.look()
        if moment < np.inf:
            self._leave_until(moment)

    def _leave_until(self, moment: float) -> None:
        leavings, order = self._workload.leavings_s, self._leavings
        while self._left < order.shape[0] and leavings[order[self._left]] <= moment:
            if self._watcher is not None:
                self._watcher.come_to(float(leavings[order[self._left]]))
            self._leave(int(order[self._left]))
            self._left += 1

    def _leave(self, number: int) -> None:
        held = self._placed.pop(number, None)
        if held is not None:
            self._busy(held[1], 1)
            self._peaks.give_back(held[0].amounts)
            self._give_back(*held)

    def _give_back(self, spec: RequestSpec, entry: Entry) -> None:
        depletion.give_back(self._table, spec, entry)
        if self._watcher is not None:
            self._watcher.freed(spec, entry)

    def _busy(self, entry: Entry, more: int) -> None:
        # A build takes no time in a simulation, so servers do not count as busy.
        if self._table.knows_servers:
            self._table.busy_counts[entry.index] += more
            self._table.note(entry.index)

    def leave_all(self) -> None:
        """Remove all remaining servers."""
        for number in list(self._placed):
            self._leave(number)
