"""The number of rows to write, which limits the writes that share a commit."""

from __future__ import annotations

from innkeeper.entrypoints.api.placement.allocations import line_count
from innkeeper.systems.placement.allocations import AllocationUpdate


def test_every_amount_counts_and_so_does_a_consumer_without_any() -> None:
    one = {"VCPU": 1, "MEMORY_MB": 2}
    assert line_count([]) == 0
    assert (
        line_count(
            [
                AllocationUpdate("a", {}),
                AllocationUpdate("b", {"p": {}}),
                AllocationUpdate("c", {"p": {"VCPU": 1}}),
            ]
        )
        == 3
    )
    assert (
        line_count([AllocationUpdate("a", {"p": one, "q": one}), AllocationUpdate("b", {"p": one})])
        == 6
    )
