"""The lower bound, and the search for the smallest fleet."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.simulation.compaction import (
    Bound,
    least_hosts,
    lower_bound,
    peak,
    smallest,
)
from innkeeper.scheduling.simulation.fleets import HostShape
from tests.support.workloads import forever, workload_of


@pytest.mark.parametrize("edge", [1, 2, 3, 9, 10, 11, 57, 99, 100])
@pytest.mark.parametrize("least", [1, 9, 57])
def test_the_smallest_is_found(edge: int, least: int) -> None:
    tried: list[int] = []

    def has_room(count: int) -> bool:
        tried.append(count)
        return count >= edge

    assert smallest(has_room, least, 100) == max(edge, least)
    assert all(least <= count <= 100 for count in tried)
    assert len(tried) == len(set(tried)), "no fleet is tried twice"
    assert len(tried) <= 14


def test_a_bound_that_is_reached_is_found_at_the_first_try() -> None:
    tried: list[int] = []

    def has_room(count: int) -> bool:
        tried.append(count)
        return True

    assert smallest(has_room, 40, 1000) == 40
    assert tried == [40]


def test_too_few_hosts_are_an_error() -> None:
    with pytest.raises(Invalid, match="Even 64 hosts have no room"):
        smallest(lambda _: False, 3, 64)


def test_the_peak_is_of_what_is_held_at_once() -> None:
    rows = [(0, 10, 1, 0), (5, 10, 1, 1), (10, 10, 1, 2), (30, forever(), 0, 3)]
    workload = workload_of(rows)
    # At 10, the first server leaves before the third arrives.
    assert peak(workload, "VCPU") == 8.0
    assert peak(workload, "MEMORY_MB") == 8192.0


def test_the_bound_is_that_of_the_scarcest_class() -> None:
    workload = workload_of([(0, 10, 1, 0)] * 9)
    tight = lower_bound(workload, HostShape("tight", {"VCPU": 8, "MEMORY_MB": 65536}))
    assert tight == Bound(4.5, "VCPU")
    assert least_hosts(tight) == 5
    generous = HostShape("x", {"VCPU": 8, "MEMORY_MB": 16384}, {"VCPU": 4.0})
    assert lower_bound(workload, generous) == Bound(2.25, "MEMORY_MB")
    assert least_hosts(Bound(3.0000000000001, "VCPU")) == 3
    assert least_hosts(Bound(0.2, "VCPU")) == 1


def test_a_host_without_a_class_is_an_error() -> None:
    with pytest.raises(Invalid, match="requests MEMORY_MB"):
        lower_bound(workload_of([(0, 1, 0, 0)]), HostShape("bare", {"VCPU": 8}))
