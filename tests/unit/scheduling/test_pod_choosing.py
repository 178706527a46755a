"""Filters and weighers of pods, and the pod that is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pod_usage import usage_of
from innkeeper.domain.pods import Pod, PodHealth, PodRequest
from innkeeper.scheduling.pod_choosing import choose, explain, refusal
from innkeeper.snapshot.pods import PodTable
from innkeeper.systems.pods.policy import policy_of
from tests.support.pod_rows import CAD, POLICY, pod_of, told
from tests.support.stores import NOW

DAY = timedelta(days=1)
ANY = PodRequest("a")


def table(*pods: Pod, **used: Mapping[str, float]) -> PodTable:
    """The pods; each has 100 of each kind, of which ``used`` gives the used amounts by name."""
    usages = {
        each.id: usage_of(told(**used[each.pod_name])) for each in pods if each.pod_name in used
    }
    return PodTable(pods, usages)


def name(found: Pod | None) -> str | None:
    return None if found is None else found.pod_name


def chosen(pods: PodTable, request: PodRequest = ANY, **multipliers: float) -> str | None:
    policy = policy_of(Podding(), None, multipliers) if multipliers else POLICY
    return name(choose(policy, pods, request))


def test_no_pods_no_choice() -> None:
    assert choose(POLICY, PodTable((), {}), ANY) is None
    assert explain(POLICY, PodTable((), {}), ANY) == []


def test_the_oldest_pod_wins_and_equals_stay_in_order() -> None:
    young = pod_of(1, created_at=NOW + DAY)
    assert chosen(table(young, pod_of(2), pod_of(3))) == "p2"
    assert chosen(table(pod_of(1), pod_of(2))) == "p1"


def test_an_operators_weight_goes_before_age() -> None:
    assert chosen(table(pod_of(1), pod_of(2, weight=0.01), pod_of(3))) == "p2"
    assert chosen(table(pod_of(1, weight=-1.0), pod_of(2))) == "p2"


def test_idle_capacity_prefers_the_emptiest_in_its_scarcest_kind() -> None:
    pods = table(
        pod_of(1), pod_of(2), p1={"vcpus": 10, "memory_mb": 70}, p2={"vcpus": 50, "memory_mb": 50}
    )
    assert chosen(pods, idle_capacity=1.0) == "p2"
    assert chosen(pods, idle_capacity=-1.0) == "p1"
    # A pod that was never measured counts as free.
    assert chosen(table(pod_of(1), pod_of(2), p1={"vcpus": 1}), idle_capacity=1.0) == "p2"


def test_two_weighers_add_up_with_their_multipliers() -> None:
    pods = table(pod_of(1, price=4.0), pod_of(2, price=1.0), p1={"vcpus": 0}, p2={"vcpus": 50})
    # p1: 1.0 idle, -1.0 cost; p2: 0.5 idle, -0.25 cost.
    assert chosen(pods, cost=1.0) == "p2"
    assert chosen(pods, idle_capacity=1.0, cost=1.0) == "p2"
    assert chosen(pods, idle_capacity=1.4, cost=1.0) == "p2"
    assert chosen(pods, idle_capacity=2.0, cost=1.0) == "p1"
    policy = policy_of(Podding(), None, {"idle_capacity": 4.0, "cost": 1.0})
    first, second = explain(policy, pods, ANY)
    assert dict(first.weights) == {"idle_capacity": 4.0, "cost": -1.0}
    assert (first.weight, second.weight) == (3.0, 1.75)


def test_a_request_must_fit_below_threshold_and_headroom() -> None:
    pods = table(pod_of(1, headroom={"vcpus": 40.0}), pod_of(2), p1={"vcpus": 50}, p2={"vcpus": 60})
    assert chosen(pods, PodRequest("a", amounts={"vcpus": 10.0})) == "p1"
    assert chosen(pods, PodRequest("a", amounts={"vcpus": 11.0})) == "p2"
    assert chosen(pods, PodRequest("a", amounts={"vcpus": 21.0})) is None
    assert chosen(pods, PodRequest("a", amounts={"memory_mb": 1e9})) == "p1"


def test_a_pod_without_any_capacity_of_a_kind_takes_only_other_work() -> None:
    nothing = PodTable(
        [pod_of(1)], {1: usage_of({"kinds": {"volume_gb": {"total": 0, "used": 0}}})}
    )
    assert chosen(nothing) == "p1"
    assert chosen(nothing, PodRequest("a", amounts={"volume_gb": 1.0})) is None


def test_every_pod_that_is_refused_has_a_reason() -> None:
    down = PodHealth(is_up=False, last_error="no answer")
    pods = table(
        pod_of(1, az_name="az2"),
        pod_of(2, tags=CAD),
        pod_of(3, is_in_maintenance=True),
        pod_of(4, health=down),
        pod_of(5),
        pod_of(6),
        p5={"vcpus": 80},
    )
    request = PodRequest("a", az_name="az1", refused=frozenset({6}))
    assert choose(POLICY, pods, request) is None
    found = explain(POLICY, pods, request)
    assert [each.refused_by for each in found] == [
        "AvailabilityZoneFilter",
        "ResourceAffinityFilter",
        "MaintenanceFilter",
        "PodStateFilter",
        "CapacityFilter",
        "RefusedPodsFilter",
    ]
    assert refusal(found) == (
        "p1: in the availability zone az2, not az1; "
        "p2: a pod for resource=CAD, not general; "
        "p3: in maintenance; p4: down: no answer; "
        "p5: vcpus: 80 used and 0 wanted of 80; p6: it refused this request"
    )


def test_bound_pods_are_kept_in_their_order_while_they_pass() -> None:
    pods = table(pod_of(1), pod_of(2), pod_of(3))
    assert chosen(pods, PodRequest("a", bound=(3, 2))) == "p3"
    full = table(pod_of(1), pod_of(2), pod_of(3), p3={"vcpus": 99})
    assert chosen(full, PodRequest("a", bound=(3, 2))) == "p2"
    assert chosen(full, PodRequest("a", bound=(3, 9))) == "p1"


def plugin(**more: Any) -> Any:
    """A filter as an operator writes it, which keeps only pods of a data center."""
    usual = {
        "NAME": "OwnFilter",
        "REASON": "elsewhere",
        "READS": ("project_id",),
        "mask": lambda pods, request, rows: np.array(
            [each.dc_name == "dc1" for each in pods.pods], dtype=np.bool_
        )[rows],
        "missing": lambda pods, request: "the data center",
    }
    return SimpleNamespace(**{**usual, **more})


OWN = plugin()
FAILING = plugin(mask=lambda pods, request, rows: 1 / 0)
LACKING = SimpleNamespace(NAME="Lacking")
HEAVY = SimpleNamespace(
    NAME="heavy",
    READS=(),
    column=lambda pods, request, rows: pods.ids[rows].astype(np.float64),
    scale=lambda pods, request: 1.0,
)
HERE = "tests.unit.scheduling.test_pod_choosing"


def test_an_operators_filter_and_weigher_are_used() -> None:
    podding = Podding(default_pod_filters=(f"{HERE}:OWN",), default_pod_weighers=(f"{HERE}:HEAVY",))
    pods = table(pod_of(1, dc_name="dc1"), pod_of(2, dc_name="dc1"), pod_of(3))
    assert name(choose(policy_of(podding), pods, ANY)) == "p2"
    assert explain(policy_of(podding), pods, ANY)[2].reason == "elsewhere"


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ((f"{HERE}:FAILING",), "fails on a table without pods .ZeroDivisionError"),
        ((f"{HERE}:LACKING",), "has no REASON, READS, mask, missing"),
        (("NoFilter",), "There is no pod filter 'NoFilter'"),
    ],
)
def test_an_unusable_plugin_is_an_error_at_start(filters: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        policy_of(Podding(default_pod_filters=filters))


def test_a_multiplier_of_an_unused_weigher_is_an_error() -> None:
    with pytest.raises(ValueError, match="pod_weigher_multipliers"):
        policy_of(Podding(pod_weigher_multipliers={"cost": 1.0}))


def test_filters_that_protect_projects_cannot_be_left_out() -> None:
    policy = policy_of(Podding(default_pod_filters=()))
    assert choose(policy, table(pod_of(1, is_in_maintenance=True)), ANY) is None
    assert choose(policy, table(pod_of(1, tags=CAD)), ANY) is None
