"""Replay the work of projects on pods. Pods are chosen by the code of the service.

As in the service, pods are measured from time to time. The usage of a pod is assumed to be its last
measurement, plus the amounts that were placed in the pod since then and are still there. A pod
accepts a request if the pod's real usage stays within its capacity. Otherwise, the next pod is
tried. The binding of the project moves to the pod that accepts.

Always true: the result depends only on the work, the pods, the policy and the options.

A real pod may refuse more than a simulated pod, because a real pod also needs a single host with
enough room.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from innkeeper.domain.pod_usage import KindUsage, capacity
from innkeeper.domain.pods import GENERAL, Pod, PodRequest
from innkeeper.scheduling import pod_choosing
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.scheduling.simulation.pod_work import Job
from innkeeper.snapshot.pods import PodTable

BEGIN = datetime(2000, 1, 1)  # noqa: DTZ001 - as in the service, times are UTC without a zone
DAY_S = 86_400.0
SAMPLES = 500
LEAVE, CHANGE, MEASURE, SAMPLE, ARRIVE = range(5)
"""Events of the same moment are processed in this order."""


@dataclass(frozen=True, slots=True)
class SimulatedPod:
    """A pod, with its reported totals by kind, and the times at which it is added and drained."""

    pod: Pod
    totals: Mapping[str, float]
    added_s: float = 0.0
    drained_s: float | None = None


@dataclass(frozen=True, slots=True)
class PodFigures:
    """The results for one pod: servers, volumes, and the used shares of capacity by kind."""

    name: str
    servers: int
    volumes: int
    mean_used: Mapping[str, float]
    most_used: Mapping[str, float]


@dataclass(slots=True)
class PodOutcome:
    """The results of a replay.

    ``skipped`` counts the pods that refused a request because they were fuller than measured.
    ``moves`` counts the moves of bindings, and ``moved`` counts the projects with such a move.
    ``apart`` counts the volumes whose server is in another pod. ``spread`` is the share of projects
    with servers or volumes in several pods, averaged over time.
    """

    days: float
    projects: int = 0
    servers: int = 0
    refused_servers: int = 0
    volumes: int = 0
    refused_volumes: int = 0
    skipped: int = 0
    moves: int = 0
    moved: int = 0
    apart: int = 0
    spread: float = 0.0
    pods: list[PodFigures] = field(default_factory=list)

    @property
    def moves_per_month(self) -> float:
        """The average number of moves of a project's binding in thirty days."""
        return self.moves / max(1, self.projects) * 30 / self.days


@dataclass(slots=True)
class _Row:
    """The state of a pod."""

    given: SimulatedPod
    capacities: Mapping[str, float]
    used: dict[str, float]
    placed: dict[str, float]
    servers: int = 0
    volumes: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    most: dict[str, float] = field(default_factory=dict)
    samples: int = 0


class PodReplay:
    """One replay. Pods are measured every ``measure_s`` seconds."""

    def __init__(
        self,
        work: Sequence[Job],
        pods: Sequence[SimulatedPod],
        policy: PodPolicy,
        measure_s: float = DAY_S,
    ) -> None:
        self._work = work
        self._policy = policy
        self._rows = {each.pod.id: _row(each) for each in pods}
        self._begin_s, self._end_s = work[0].at_s, max(each.at_s for each in work)
        self._measure_s = measure_s
        self._bound: dict[int, int] = {}
        self._moved: set[int] = set()
        self._pod_of_server: dict[int, int] = {}
        self._held: dict[int, Counter[int]] = defaultdict(Counter)
        self._measured: dict[int, dict[str, KindUsage]] = {}
        self._table = PodTable((), {})
        self._now_s = self._measured_s = self._begin_s
        self._events: list[tuple[float, int, int, Callable[[], None]]] = []
        self._number = 0
        self._spread: list[float] = []
        self._outcome = PodOutcome(max(self._end_s - self._begin_s, 1.0) / DAY_S)

    def run(self, advance: Callable[[int], None] = lambda _: None) -> PodOutcome:
        """Replay all work, and return the results.

        ``advance`` is called with the number of servers in each request.
        """
        self._schedule()
        for each in self._work:

            def arrive(job: Job = each) -> None:
                self._arrive(job)
                if not job.is_volume:
                    advance(len(job.rows))

            self._at(each.at_s, ARRIVE, arrive)
        while self._events and self._events[0][0] <= self._end_s:
            self._now_s, _, _, act = heapq.heappop(self._events)
            act()
        return self._figures()

    def _at(self, at_s: float, order: int, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_s, order, self._number, act))

    def _schedule(self) -> None:
        moments = {self._begin_s}
        for each in self._rows.values():
            given = each.given
            changes = (given.added_s, given.drained_s)
            moments |= {self._begin_s + each_s for each_s in changes if each_s is not None}
        for at_s in moments:
            self._at(at_s, CHANGE, self._tabulate)
        at_s = self._begin_s
        while at_s <= self._end_s:
            self._at(at_s, MEASURE, self._measure)
            at_s += self._measure_s
        step_s = (self._end_s - self._begin_s) / SAMPLES
        for number in range(1, SAMPLES + 1):
            self._at(self._begin_s + number * step_s, SAMPLE, self._sample)

    def _measure(self) -> None:
        for row in self._rows.values():
            row.placed.clear()
        self._measured_s = self._now_s
        self._measured = {
            pod_id: {
                kind: KindUsage(total, row.used[kind]) for kind, total in row.given.totals.items()
            }
            for pod_id, row in self._rows.items()
            if self._is_there(row)
        }
        self._tabulate()

    def _is_there(self, row: _Row) -> bool:
        return self._now_s >= self._begin_s + row.given.added_s

    def _tabulate(self) -> None:
        pods = []
        for row in self._rows.values():
            given = row.given
            if self._is_there(row):
                drained_s = given.drained_s
                is_drained = drained_s is not None and self._now_s >= self._begin_s + drained_s
                pods.append(replace(given.pod, is_in_maintenance=is_drained))
        placed = {pod_id: row.placed for pod_id, row in self._rows.items()}
        self._table = PodTable(pods, self._measured, placed)

    def _arrive(self, job: Job) -> None:
        outcome = self._outcome
        if job.is_volume and job.rows[0] not in self._pod_of_server:
            # The server of this volume was refused.
            return
        place = self._place(job)
        if job.is_volume:
            outcome.volumes += 1
            outcome.refused_volumes += place is None
            outcome.apart += place not in (None, self._pod_of_server[job.rows[0]])
        else:
            outcome.servers += len(job.rows)
            outcome.refused_servers += len(job.rows) if place is None else 0
        if place is not None:
            self._add(job, place)

    def _place(self, job: Job) -> int | None:
        """Return the pod that accepts a request, and move the project's binding to this pod."""
        bound = self._bound.get(job.project)
        refused: frozenset[int] = frozenset()
        for _ in self._rows:
            request = PodRequest(
                str(job.project),
                GENERAL,
                amounts=job.amounts,
                bound=() if bound is None else (bound,),
                refused=refused,
            )
            pod = pod_choosing.choose(self._policy, self._table, request)
            if pod is None:
                return None
            if self._accepts(self._rows[pod.id], job):
                self._bind(job.project, bound, pod.id)
                return pod.id
            self._outcome.skipped += 1
            refused |= {pod.id}
        return None

    @staticmethod
    def _accepts(row: _Row, job: Job) -> bool:
        """Return whether a pod has room. Kinds without a known capacity are unlimited."""
        return all(
            row.used[kind] + amount <= row.capacities.get(kind, float("inf"))
            for kind, amount in job.amounts.items()
        )

    def _bind(self, project: int, bound: int | None, pod_id: int) -> None:
        if bound not in (None, pod_id):
            self._outcome.moves += 1
            self._moved.add(project)
        self._bound[project] = pod_id

    def _add(self, job: Job, pod_id: int) -> None:
        row, one, begun_s = self._rows[pod_id], job.one, self._now_s
        self._use(pod_id, job.amounts, 1.0, begun_s)
        self._held[job.project][pod_id] += len(job.rows)
        row.servers += 0 if job.is_volume else len(job.rows)
        row.volumes += job.is_volume
        if not job.is_volume:
            self._pod_of_server.update(dict.fromkeys(job.rows, pod_id))

        def leave() -> None:
            self._use(pod_id, one, -1.0, begun_s)
            self._held[job.project][pod_id] -= 1

        for at_s in job.leavings_s:
            if at_s <= self._end_s:
                self._at(at_s, LEAVE, leave)

    def _use(self, pod_id: int, amounts: Mapping[str, float], sign: float, begun_s: float) -> None:
        """Add (``sign`` 1) or subtract (-1) the amounts of work that began at a moment."""
        row, index = self._rows[pod_id], self._table.row_of(pod_id)
        for kind, amount in amounts.items():
            row.used[kind] += sign * amount
            # The last measurement includes all work that began before it, even if the work has
            # ended since.
            if begun_s >= self._measured_s:
                row.placed[kind] += sign * amount
                if index is not None:
                    self._table.used[kind][index] += sign * amount

    def _sample(self) -> None:
        for row in self._rows.values():
            if not self._is_there(row):
                continue
            row.samples += 1
            for kind, whole in row.capacities.items():
                share = row.used[kind] / whole if whole else 0.0
                row.sums[kind] += share  # type: ignore[assignment]
                row.most[kind] = max(row.most.get(kind, 0.0), share)
        several, some = 0, 0
        for held in self._held.values():
            count = sum(number > 0 for number in held.values())
            some += count > 0
            several += count > 1
        self._spread.append(several / some if some else 0.0)

    def _figures(self) -> PodOutcome:
        outcome = self._outcome
        outcome.projects = len(self._bound)
        outcome.moved = len(self._moved)
        outcome.spread = sum(self._spread) / len(self._spread) if self._spread else 0.0
        outcome.pods = [
            PodFigures(
                row.given.pod.pod_name,
                row.servers,
                row.volumes,
                {kind: row.sums[kind] / max(1, row.samples) for kind in row.capacities},
                {kind: row.most.get(kind, 0.0) for kind in row.capacities},
            )
            for row in self._rows.values()
        ]
        return outcome


def _row(given: SimulatedPod) -> _Row:
    capacities = {kind: capacity(given.pod, kind, total) for kind, total in given.totals.items()}
    return _Row(given, capacities, defaultdict(float), defaultdict(float))


def blank_pod(number: int, **fields: object) -> Pod:
    """Return a simulated pod, without an address and a login."""
    texts = (
        "az_name pod_az_name dc_name auth_url username user_domain project_name project_domain "
        "region_name"
    )
    usual: dict[str, object] = {
        "id": number,
        "uuid": str(number),
        "pod_name": f"p{number}",
        **dict.fromkeys(texts.split(), ""),
        "tags": {},
        "weight": 0.0,
        "price": 0.0,
        "threshold_percent": 90.0,
        "headroom": {},
        "allocation_ratios": {},
        "is_in_maintenance": False,
        "endpoints": {},
        "created_at": BEGIN,
        "updated_at": BEGIN,
        **fields,
    }
    return Pod(**usual)  # type: ignore[arg-type]


def added_at(added_s: float) -> datetime:
    """Return the time of creation of a pod that is added at this time of the replay."""
    return BEGIN + timedelta(seconds=added_s)
