"""Pods as rows, on every database: their names, their password, and when they can go."""

from __future__ import annotations

import os

import pytest

from innkeeper.domain.errors import AlreadyExists, Conflict, InUse, Invalid, NotFound
from innkeeper.domain.pods import PodRouting
from innkeeper.store.transactions import Store
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.pods import bindings, pods, routings
from tests.support.clouds import Numbers
from tests.support.pod_rows import add_pod, measure, pod_of
from tests.support.stores import NOW

BOX = SecretBox([bytes(range(32))], os.urandom)
FAILURES_MAX = 2


def test_a_pods_password_is_sealed_and_goes_with_it(store: Store) -> None:
    with store.write() as tx:
        made = pods.create(tx, pod_of(1), "hush", own_region="Top", box=BOX, now=NOW)
        assert pods.password_of(tx, made, BOX) == "hush"
        pods.delete(tx, made.uuid)
        with pytest.raises(Conflict, match="password of pod p1 is lost"):
            pods.password_of(tx, made, BOX)
        with pytest.raises(NotFound):
            pods.get(tx, made.uuid)


def test_names_are_unique_and_not_the_own_region(store: Store) -> None:
    with store.write() as tx:
        add_pod(tx, 1)
        with pytest.raises(AlreadyExists):
            pods.check_name(tx, "p1", "Top")
        with pytest.raises(Conflict, match="region of this service"):
            pods.check_name(tx, "Top", "Top")
        pods.check_name(tx, "p2", "Top")


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": float("nan")},
        {"price": 1e13},
        {"threshold_percent": 0.0},
        {"threshold_percent": 100.5},
        {"headroom": {"gold": 1.0}},
        {"headroom": {"vcpus": -1.0}},
        {"allocation_ratios": {"vcpus": float("inf")}},
    ],
)
def test_numbers_that_give_no_order_or_limit_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        pods.changed(pod_of(1), wrong)


def test_a_pod_with_bindings_or_routings_stays(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        measure(tx, pod, vcpus=1)
        binding, _ = bindings.bind_to(tx, "a", pod, ids=Numbers(), now=NOW)
        with pytest.raises(InUse, match="1 active bindings and 0 routings"):
            pods.delete(tx, pod.uuid)
        bindings.end(tx, binding.uuid, now=NOW)
        wanted = PodRouting(0, "t", "b", pod.id, "a", "server", NOW, NOW)
        routing = routings.create(tx, wanted)
        with pytest.raises(AlreadyExists):
            routings.create(tx, wanted)
        with pytest.raises(InUse, match="0 active bindings and 1 routings"):
            pods.delete(tx, pod.uuid)
        routings.delete(tx, routing.id)
        pods.delete(tx, pod.uuid)
        assert bindings.get(tx, binding.uuid).pod_uuid == pod.uuid
        assert bindings.get(tx, binding.uuid).pod_id is None


def test_a_pod_is_down_after_failures_in_a_row_and_up_after_the_next_answer(store: Store) -> None:
    with store.write() as tx:
        uuid = add_pod(tx, 1).uuid
        states = []
        for error in ("late", "x" * 5000):
            after = pods.record_failure(tx, uuid, error, FAILURES_MAX, NOW)
            assert after is not None
            states.append(after.health.is_up)
        assert states == [None, False]
        after = pods.record_success(tx, uuid, 2.0, NOW)
        assert after is not None
        assert (after.health.is_up, after.health.failures) == (True, 0)
        assert pods.record_failure(tx, "gone", "late", FAILURES_MAX, NOW) is None
        assert pods.record_success(tx, "gone", 2.0, NOW) is None
