"""The comparison of two host tables reports every kind of difference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from innkeeper.domain.ids import AgentId, HostIndex, ProviderId
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import fill, host, row_for, table_of

A = host("a", traits=("T",), capabilities={"n": 1}, units={"VCPU": (2, 9, 2)})
B = host("b", zone="south", agent="other", used={"VCPU": 3})


def test_a_table_equals_itself_and_its_like() -> None:
    assert differences(table_of(A, B), table_of(A, B)) == []
    assert differences(HostTable(), HostTable()) == []


def test_the_way_that_led_to_a_table_does_not_matter() -> None:
    """Rows, codes and columns are in another order, and some are left over from removed hosts."""
    table = HostTable()
    gone = host("gone", zone="west", agent="late", traits=("OLD",), free={"CUSTOM_OLD": 3})
    for provider_id, each in ((3, gone), (2, B), (1, A)):
        fill(table, row_for(table, provider_id, each.name), each)
    table.remove_row(ProviderId(3))
    assert sorted(table.names) == ["a", "b"]
    assert differences(table, table_of(A, B)) == []
    assert differences(table_of(A, B), table) == []


CHANGES: list[tuple[Callable[[HostTable, HostIndex], object], str]] = [
    (lambda t, i: t.generations.__setitem__(i, 5), "b: generation: 5, not 1."),
    (lambda t, i: t.is_open.__setitem__(i, False), "b: is open: False, not True."),
    (lambda t, i: t.free["VCPU"].__setitem__(i, 1), "b: free VCPU: 1.0, not 16.0."),
    (lambda t, i: t.used["VCPU"].__setitem__(i, 4), "b: used VCPU: 4.0, not 3.0."),
    (lambda t, i: t.traits["T"].__setitem__(i, True), "b: trait T: True, not False."),
    (lambda t, i: t.ensure_trait("N").__setitem__(i, True), "b: trait N: True, not 0.0."),
    (lambda t, i: t.zone_codes.__setitem__(i, t.zone_code("east")), "b: zone: east, not south."),
    (
        lambda t, i: t.agent_codes.__setitem__(i, t.agent_code(AgentId("x"))),
        "b: agent: x, not other.",
    ),
    (lambda t, i: t.set_capabilities(i, {"n": 2}), "b: the capabilities differ."),
    (lambda t, i: row_for(t, 2, "B"), "B: the name is not b."),
    (lambda t, i: t.min_units["VCPU"].__setitem__(i, 4), "b: min_unit VCPU: 4.0, not 1.0."),
    (
        lambda t, i: t.max_units["VCPU"].__setitem__(i, 8),
        "b: max_unit VCPU: 8.0, not 2147483647.0.",
    ),
    (lambda t, i: t.step_sizes["VCPU"].__setitem__(i, 2), "b: step_size VCPU: 2.0, not 1.0."),
]


@pytest.mark.parametrize(("change", "told"), CHANGES, ids=[told for _, told in CHANGES])
def test_one_difference_is_reported_once(
    change: Callable[[HostTable, HostIndex], object], told: str
) -> None:
    mine, theirs = table_of(A, B), table_of(A, B)
    change(mine, HostIndex(1))
    assert differences(mine, theirs) == [told]
    assert len(differences(theirs, mine)) == 1


def test_hosts_of_only_one_table_are_reported_by_name() -> None:
    assert differences(table_of(A, B), table_of(A)) == [
        "b (provider 2) is only in the first table."
    ]
    assert differences(table_of(A), table_of(A, B)) == [
        "b (provider 2) is only in the second table."
    ]
    assert differences(table_of(A), HostTable()) == ["a (provider 1) is only in the first table."]


def test_differences_of_several_hosts() -> None:
    other = host("b", zone="south", agent="other", vcpus=8, memory_mb=9, used={"VCPU": 3})
    told = differences(table_of(A, B), table_of(A, other))
    assert told == ["b: free MEMORY_MB: 32768.0, not 9.0.", "b: free VCPU: 16.0, not 8.0."]


def test_a_table_that_contradicts_itself_is_reported() -> None:
    broken = table_of(A, B)
    broken.index_of[ProviderId(1)] = HostIndex(1)
    assert differences(broken, table_of(A, B)) == [
        "The index by provider of a table does not match its rows."
    ]
    broken = table_of(A, B)
    del broken.index_by_name["a"]
    assert differences(table_of(A, B), broken) == [
        "The index by name of a table does not match its rows."
    ]
    broken = table_of(A, B)
    broken.free["VCPU"] = broken.free["VCPU"][:1]
    assert differences(broken, broken) == ["A table of 2 hosts has columns of [1, 2] rows."] * 2
