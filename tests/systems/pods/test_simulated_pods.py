"""A simulation of pods decides as the service does, on the same work and measurements."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import GENERAL, Pod, PodMeasurement, PodRequest, PodRouting
from innkeeper.scheduling.simulation.pod_replay import BEGIN, PodReplay, SimulatedPod, blank_pod
from innkeeper.scheduling.simulation.pod_work import Job, WorkOptions, jobs_of
from innkeeper.store.queries.pods import measurements, pods, routings
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import bindings
from innkeeper.systems.pods.bindings import NoPod
from innkeeper.systems.pods.policy import policy_of
from tests.support.clouds import Numbers
from tests.support.workloads import workload_of

WORKLOAD = workload_of([(60.0 * row, 1e9, row % 3, row // 2) for row in range(160)])
MEASURE_S, COUNT = 1800.0, 3
TOTALS = {"vcpus": 90.0, "memory_mb": 400_000.0, "volume_gb": 2500.0}
POLICIES = {
    "fill": policy_of(Podding(), None, {"creation_time": 1.0}),
    "spread": policy_of(Podding(), None, {"idle_capacity": 1.0}),
}


class Served:
    """The rules of the service on a store, with pods that accept what fits."""

    def __init__(self, tx: Tx, policy: str) -> None:
        self.tx, self.policy = tx, POLICIES[policy]
        self.ids = Numbers()
        self.used: dict[int, Counter[str]] = defaultdict(Counter)
        self.servers: Counter[int] = Counter()
        self.moves = self.refused = 0
        for number in range(1, COUNT + 1):
            pods.add(tx, blank_pod(number))

    def measure(self, at_s: float) -> None:
        """Measure all pods."""
        for each in pods.every(self.tx):
            told = {
                k: {"total": v, "used": float(self.used[each.id][k])} for k, v in TOTALS.items()
            }
            at = BEGIN + timedelta(seconds=at_s)
            measurements.add(self.tx, PodMeasurement(0, each.id, at, {"kinds": told}))

    def serve(self, job: Job) -> None:
        """Choose a pod, try it, and bind the project to the pod that accepts."""
        project, refused = str(job.project), frozenset[int]()
        at = BEGIN + timedelta(seconds=job.at_s)
        while True:
            asked = PodRequest(project, GENERAL, None, job.amounts, refused=refused)
            try:
                pod = bindings.choose(self.tx, self.policy, asked).pod
            except NoPod:
                self.refused += len(job.rows)
                return
            if self.takes(pod, job):
                break
            refused |= {pod.id}
        had = bool(list(bindings.page(self.tx, bindings.BindingSearch(project), after=0, limit=1)))
        made = bindings.follow(self.tx, asked, pod, at, ids=self.ids, now=at)
        self.moves += made is not None and had
        self.used[pod.id].update(job.amounts)
        self.route(pod, job, at)
        self.servers[pod.id] += 0 if job.is_volume else len(job.rows)

    def route(self, pod: Pod, job: Job, at: datetime) -> None:
        """Add the routing of accepted work. At a measurement's moment, it counts as later."""
        name, one = self.ids.uuid(), {kind: int(each) for kind, each in job.one.items()}
        row = PodRouting(0, name, name, pod.id, str(job.project), "server", at, at)
        routings.add(
            self.tx,
            replace(
                row,
                created_at=at + timedelta(microseconds=1),
                number=len(job.rows),
                vcpus=one.get("vcpus"),
                memory_mb=one.get("memory_mb"),
                size_gb=one.get("volume_gb"),
            ),
        )

    def takes(self, pod: Pod, job: Job) -> bool:
        """Return whether a pod has room."""
        used = self.used[pod.id]
        return all(used[kind] + amount <= TOTALS[kind] for kind, amount in job.amounts.items())


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_replay_binds_and_moves_as_the_service_does(store: Store, policy: str) -> None:
    work = jobs_of(WORKLOAD, WorkOptions(projects=6, volume_share=0.5))
    simulated = [SimulatedPod(blank_pod(number), TOTALS) for number in range(1, COUNT + 1)]
    found = PodReplay(work, simulated, POLICIES[policy], MEASURE_S).run()
    assert found.moves > 0 and found.refused_servers > 0
    with store.write() as tx:
        served, next_s, lost = Served(tx, policy), work[0].at_s, set[int]()
        for each in work:
            while next_s <= each.at_s:
                served.measure(next_s)
                next_s += MEASURE_S
            if each.is_volume and each.rows[0] in lost:
                continue
            before = served.refused
            served.serve(each)
            if served.refused > before and not each.is_volume:
                lost.update(each.rows)
        numbers = {each.pod_name: each.id for each in pods.every(tx)}
        assert {each.name: each.servers for each in found.pods} == {
            name: served.servers[number] for name, number in numbers.items()
        }
        assert found.moves == served.moves
        assert found.refused_servers + found.refused_volumes == served.refused
