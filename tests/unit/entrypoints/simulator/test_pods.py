"""Pods and their policies on the command line, and their results."""

from __future__ import annotations

import json

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator import pod_tables
from innkeeper.entrypoints.simulator.pods import NamedPodPolicy, parse, pods_of
from innkeeper.entrypoints.simulator.text_tables import text_of
from innkeeper.scheduling.simulation.pod_replay import DAY_S, PodOutcome, PodReplay
from innkeeper.scheduling.simulation.pod_work import WorkOptions, jobs_of
from tests.support.workloads import workload_of

PODS = "2x10c20g/volumes=100"
WORKLOAD = workload_of([(float(row), 1e9, 0, row) for row in range(12)])


def parsed(*policies: str, pods: str = PODS) -> tuple[NamedPodPolicy, ...]:
    return parse({"pods": pods, "pod_policy": list(policies)})


def outcomes(*policies: str) -> list[tuple[NamedPodPolicy, PodOutcome]]:
    work = jobs_of(WORKLOAD, WorkOptions(projects=3))
    return [
        (each, PodReplay(work, each.pods, each.policy).run())
        for each in parsed(*policies, pods="2x8c64g/volumes=10000/threshold=100")
    ]


def test_pods_have_shapes_numbers_and_days() -> None:
    keys = "threshold=80/weight=-1/price=2/headroom=1c/cpu_ratio=4/volumes=7"
    first, second, third = pods_of(f"2x10c20g+5c/{keys}/from=2/drain=3.5")
    assert [each.pod.pod_name for each in (first, second, third)] == ["p1", "p2", "p3"]
    assert [each.pod.id for each in (first, second, third)] == [1, 2, 3]
    assert first.totals == {"vcpus": 10.0, "memory_mb": 20 * 1024}
    assert third.totals == {"vcpus": 5.0, "volume_gb": 7.0}
    pod = third.pod
    assert (pod.threshold_percent, pod.weight, pod.price) == (80.0, -1.0, 2.0)
    assert (pod.headroom, pod.allocation_ratios) == ({"vcpus": 1.0}, {"vcpus": 4.0})
    assert (third.added_s, third.drained_s) == (2 * DAY_S, 3.5 * DAY_S)
    assert third.pod.created_at > first.pod.created_at


BAD_PODS = {
    "": "COUNTx",
    "0x10c": "COUNTx",
    "1001x10c": "COUNTx",
    "999x10c+2x10c": "at most 1000",
    "2xbig": "Write a shape",
    "2x10c/colour=red": "colour",
    "2x10c/threshold=0": "threshold",
    "2x10c/weight=x": "weight is 'x'",
    "2x10c/price=-1": "price",
    "2x10c/volumes": "KEY=VALUE",
    "2x10c/headroom=machine": "cores, memory and disk",
    "2x10c/from=1": "from the beginning",
}


@pytest.mark.parametrize("text", BAD_PODS)
def test_pods_that_are_not_usable_are_refused_in_words(text: str) -> None:
    with pytest.raises(Invalid, match=BAD_PODS[text]):
        pods_of(text)


def test_policies_have_the_weighers_filters_and_pods_that_they_name() -> None:
    (usual,) = parsed()
    assert [weigher.NAME for weigher, _ in usual.policy.weighers] == ["weight", "creation_time"]
    one, two = parsed("one=idle_capacity=2.5;threshold=70", "two=;filters=AllPodsFilter;pods=3x10c")
    ((weigher, multiplier),) = one.policy.weighers
    assert (weigher.NAME, multiplier) == ("idle_capacity", 2.5)
    assert [each.pod.threshold_percent for each in one.pods] == [70.0, 70.0]
    assert [weigher.NAME for weigher, _ in two.policy.weighers] == ["weight", "creation_time"]
    assert len(two.pods) == 3
    assert "CapacityFilter" in [each.NAME for each in two.policy.filters]


BAD_POLICIES = {
    ("nothing",): "NAME=WEIGHERS",
    ("a=no_weigher",): "The policy a: .*no_weigher",
    ("a=;filters=NoFilter",): "The policy a: .*NoFilter",
    ("a=;driver=chance",): "expected filters=",
    ("a=;threshold=101",): "threshold_percent",
    ("a=;pods=",): "COUNTx",
    ("a=", "a="): "same name",
}


@pytest.mark.parametrize("texts", BAD_POLICIES)
def test_policies_that_are_not_usable_are_refused_in_words(texts: tuple[str, ...]) -> None:
    with pytest.raises(Invalid, match=BAD_POLICIES[texts]):
        parsed(*texts)


def test_results_are_shown_as_tables_and_as_json() -> None:
    found = outcomes("fill=creation_time", "spread=idle_capacity")
    first, *others = pod_tables.all_of(found)
    assert [row[0] for row in first.rows] == ["fill", "spread"]
    assert [each.title for each in others] == [
        "Pods with the policy fill",
        "Pods with the policy spread",
    ]
    assert [row[0] for row in others[0].rows] == ["p1", "p2"]
    assert "100.0 %" in text_of(others[0])
    assert "12 servers" in pod_tables.summary(WORKLOAD, found)[0]
    plain = json.loads(pod_tables.json_of(WORKLOAD, found))
    assert [each["policy"] for each in plain["policies"]] == ["fill", "spread"]
    assert plain["policies"][0]["pods"][0]["servers"] == 8
