"""Measurements of pods, on every database: which are due, which are kept, and what they say."""

from __future__ import annotations

from datetime import timedelta

from innkeeper.domain.pod_settings import Podding
from innkeeper.store.transactions import Store
from innkeeper.systems.pods import pods, usage
from tests.support.pod_rows import add_pod, measure
from tests.support.stores import NOW

DAY = timedelta(days=1)
PODDING = Podding(pod_measurements_kept_days=10)


def test_pods_are_due_until_they_are_measured_and_after_a_day(store: Store) -> None:
    with store.write() as tx:
        first = add_pod(tx, 1)
        second = add_pod(tx, 2)
        measure(tx, first, NOW, vcpus=1)
        assert usage.due(tx, PODDING, NOW + DAY / 2) == [second]
        assert usage.due(tx, PODDING, NOW + DAY) == [first, second]
        # A clock that was set back does not stop the measurements.
        assert usage.due(tx, PODDING, NOW - DAY) == [first, second]


def test_a_pod_that_is_down_is_not_due(store: Store) -> None:
    with store.write() as tx:
        first = add_pod(tx, 1)
        pods.record_failure(tx, first.uuid, "it is away", 1, NOW)
        assert usage.due(tx, PODDING, NOW) == []
        pods.record_success(tx, first.uuid, 1.0, NOW)
        assert [each.uuid for each in usage.due(tx, PODDING, NOW)] == [first.uuid]


def test_old_measurements_go_except_the_newest_of_each_pod(store: Store) -> None:
    with store.write() as tx:
        first = add_pod(tx, 1)
        second = add_pod(tx, 2)
        for day in range(4):
            measure(tx, first, NOW + day * DAY, vcpus=day)
        measure(tx, second, NOW, vcpus=7)
        assert usage.prune(tx, PODDING, NOW + 12 * DAY) == 2
        assert [
            each.usage["kinds"]["vcpus"]["used"] for each in usage.history(tx, first, limit=9)
        ] == [2, 3]
        assert len(usage.history(tx, second, limit=9)) == 1
        assert usage.prune(tx, Podding(pod_measurements_kept_days=0), NOW + 99 * DAY) == 0


def test_a_pod_that_was_never_measured_has_no_age_and_an_old_measurement_is_marked(
    store: Store,
) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        never = usage.of_pod(tx, pod, PODDING, NOW)
        assert (never.measurement, never.age_s, never.is_old) == (None, None, False)
        measure(tx, pod, NOW, vcpus=10)
        measure(tx, pod, NOW + DAY, vcpus=20)
        fresh = usage.of_pod(tx, pod, PODDING, NOW + 2 * DAY)
        assert (fresh.age_s, fresh.is_old) == (DAY.total_seconds(), False)
        assert fresh.forecasts["vcpus"].full_at == NOW + 7 * DAY
        old = usage.of_pod(tx, pod, PODDING, NOW + 4 * DAY)
        assert old.is_old
        assert usage.ages(tx, NOW + 2 * DAY) == {"p1": (False, DAY.total_seconds())}


def test_a_measurement_of_a_pod_that_is_gone_is_dropped(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        assert usage.record(tx, pod.uuid, {"kinds": {}}, NOW)
        assert not usage.record(tx, "gone", {"kinds": {}}, NOW)
