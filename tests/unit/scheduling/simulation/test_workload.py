"""Workloads: which servers are one request, and in what order requests arrive."""

from __future__ import annotations

import numpy as np
import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered
from tests.support.workloads import SHAPES, workload_of


def test_consecutive_servers_of_a_batch_are_one_request() -> None:
    workload = workload_of([(0, 9, 0, 0), (0, 9, 0, 0), (0, 9, 1, 0), (0, 9, 0, 0)])
    assert workload.requests().tolist() == [0, 2, 3, 4]


def test_requests_differ_by_batch_and_time() -> None:
    workload = workload_of([(0, 9, 0, 0), (0, 9, 0, 1), (5, 9, 0, 1)])
    assert workload.requests().tolist() == [0, 1, 2, 3]


def test_the_commonest_shape_is_counted_by_servers() -> None:
    workload = workload_of([(0, 9, 2, 0), (0, 9, 1, 1), (0, 9, 1, 2)])
    assert workload.commonest() is SHAPES[1]
    assert workload.per_shape().tolist() == [0, 2, 1]


def test_cores_and_memory_are_named_first() -> None:
    shapes = (ServerShape("a", {"CUSTOM_A": 1, "MEMORY_MB": 1, "DISK_GB": 1, "VCPU": 1}),)
    workload = workload_of([(0, 1, 0, 0)], shapes)
    assert workload.classes() == ("VCPU", "MEMORY_MB", "CUSTOM_A", "DISK_GB")
    assert workload.amounts_of("CUSTOM_B").tolist() == [0.0]


def test_rows_are_brought_into_order_and_equals_stay_as_they_are() -> None:
    arrivals, leavings, (codes,) = ordered(
        np.array([5.0, 1.0, 5.0]), np.array([6.0, NEVER, 5.0]), np.array([1, 2, 3])
    )
    assert arrivals.tolist() == [1.0, 5.0, 5.0]
    assert codes.tolist() == [2, 1, 3]
    assert (leavings > arrivals).all(), "who leaves at once was there for a moment"


@pytest.mark.parametrize("amounts", [{}, {"VCPU": 0}, {"VCPU": -1}, {"VCPU": 2**60}])
def test_a_shape_needs_something(amounts: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        ServerShape("nothing", amounts)


def test_a_workload_has_servers() -> None:
    nothing = np.zeros(0)
    whole = np.zeros(0, dtype=np.int64)
    with pytest.raises(Invalid, match="no servers"):
        Workload("empty", SHAPES, nothing, nothing, whole, whole)
