"""Limits and forecasts of pods, computed by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from innkeeper.domain.pod_usage import (
    KindUsage,
    Point,
    capacity,
    forecasts,
    limit,
    number,
    usage_of,
)
from innkeeper.domain.pods import GENERAL, group_of, tags_of
from tests.support.pod_rows import pod_of, told
from tests.support.stores import NOW

DAY = timedelta(days=1)


def points(*used: float, total: float | None = 100.0) -> list[Point]:
    """One measurement a day."""
    return [(NOW + day * DAY, {"vcpus": KindUsage(total, each)}) for day, each in enumerate(used)]


def test_a_limit_is_the_stricter_of_threshold_and_headroom() -> None:
    pod = pod_of(1, threshold_percent=80.0, headroom={"vcpus": 30.0})
    assert limit(pod, "vcpus", 100.0) == 70.0
    assert limit(pod, "memory_mb", 100.0) == 80.0
    assert limit(pod, "vcpus", 10.0) == 0.0
    wide = pod_of(1, allocation_ratios={"vcpus": 4.0})
    assert (capacity(wide, "vcpus", 100.0), limit(wide, "vcpus", 100.0)) == (400.0, 320.0)


def test_malformed_values_of_a_pod_count_as_missing() -> None:
    assert usage_of({}) == {}
    assert usage_of({"kinds": []}) == {}
    assert usage_of({"kinds": {"vcpus": 7, "gold": {"total": 1, "used": 1}}}) == {}
    assert usage_of(told(vcpus=5)) == {"vcpus": KindUsage(100.0, 5.0)}
    infinite = {"kinds": {"volume_gb": {"total": "infinite", "used": 3}}}
    assert usage_of(infinite) == {"volume_gb": KindUsage(None, 3.0)}


@pytest.mark.parametrize("wrong", [None, True, "7", -1, float("nan"), float("inf"), 10**400, [1]])
def test_only_finite_numbers_from_zero_on_are_amounts(wrong: object) -> None:
    assert number(wrong) is None


def test_a_steady_growth_is_continued() -> None:
    found = forecasts(pod_of(1), points(10, 20, 30, 40))["vcpus"]
    assert found.used_per_day == pytest.approx(10)
    # The forecast runs from 40 to the limit of 80.
    assert found.full_at == NOW + 3 * DAY + 4 * DAY
    assert found.error_percent == pytest.approx(0)
    assert found.error_count == 2


def test_the_error_of_past_forecasts_is_shown() -> None:
    found = forecasts(pod_of(1), points(0, 10, 40))["vcpus"]
    # The line through the first two points predicts 20, but the third point is 40.
    assert found.error_percent == pytest.approx(20)
    assert found.error_count == 1


def test_a_pod_that_does_not_grow_never_fills() -> None:
    assert forecasts(pod_of(1), points(40, 30, 20))["vcpus"].full_at is None
    assert forecasts(pod_of(1), points(20, 20, 20))["vcpus"].full_at is None
    slow = points(20, 20.001)
    assert forecasts(pod_of(1), slow)["vcpus"].full_at is None


def test_a_full_pod_is_full_now_and_one_without_total_never() -> None:
    assert forecasts(pod_of(1), points(70, 85))["vcpus"].full_at == NOW + DAY
    assert forecasts(pod_of(1), points(70, 85, total=None))["vcpus"].full_at is None


def test_one_measurement_is_no_trend_and_two_at_one_moment_are_flat() -> None:
    assert forecasts(pod_of(1), points(10)) == {}
    twice = [points(10)[0], points(90)[0]]
    assert forecasts(pod_of(1), twice)["vcpus"].used_per_day == 0


@pytest.mark.parametrize(
    "tags", [{}, {"resource": "CAD"}, {"resource": "CAD Modeling", "a=b": "x&y", "ü": "ß,;%"}]
)
def test_the_name_of_a_group_gives_its_tags(tags: dict[str, str]) -> None:
    assert tags_of(group_of(tags)) == tags
    assert (group_of(tags) == GENERAL) == (not tags)


@pytest.mark.parametrize("wrong", ["", "b=1&a=2", "a", "a=1&a=2", "a==1"])
def test_no_two_names_are_of_one_group(wrong: str) -> None:
    assert tags_of(wrong) is None
