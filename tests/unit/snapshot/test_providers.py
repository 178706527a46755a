"""The table of all providers: rows that move, and a forest that follows them."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.domain.placement import SHARES
from innkeeper.snapshot.providers import NO_PROVIDER, ProviderTable


def table_of(*families: tuple[int, int, int]) -> ProviderTable:
    """A table of providers by id, parent's id and root's id; uuids are ``p<id>``."""
    table = ProviderTable()
    table.add((ProviderId(each), ProviderUuid(f"p{each}")) for each, _, _ in families)
    for each, parent, root in families:
        index = table.index_of[ProviderId(each)]
        table.set_family(index, ProviderId(parent), ProviderId(root))
    return table


def at(table: ProviderTable, provider: int) -> HostIndex:
    return table.index_of[ProviderId(provider)]


def test_rows_are_found_by_uuid_after_others_moved_into_gaps() -> None:
    table = table_of((1, 0, 1), (2, 0, 2), (3, 2, 2))
    table.remove_row(ProviderId(1))
    assert table.row_of == {"p2": at(table, 2), "p3": at(table, 3)}
    assert [table.uuids[at(table, each)] for each in (2, 3)] == ["p2", "p3"]
    table.remove_row(ProviderId(1))
    assert table.row_count == 2


def test_the_forest_follows_parents() -> None:
    table = table_of((1, 0, 1), (2, 0, 2))
    assert table.forest.is_flat
    table.set_family(at(table, 2), ProviderId(1), ProviderId(1))
    assert table.forest.tree_count == 1
    table.set_family(at(table, 2), NO_PROVIDER, ProviderId(2))
    assert table.forest.tree_count == 2


def test_the_forest_stays_while_only_amounts_change() -> None:
    table = table_of((1, 0, 1), (2, 1, 1))
    before = table.forest
    table.ensure_class("VCPU")
    table.set_capacity("VCPU", [at(table, 1)], np.array([8.0]))
    table.set_traits(at(table, 1), frozenset({"HW_CPU_X86_VMX"}))
    table.set_aggregates(at(table, 1), frozenset())
    table.set_family(at(table, 2), ProviderId(1), ProviderId(1))
    assert table.forest is before


def test_the_forest_follows_aggregates_and_sharing() -> None:
    table = table_of((1, 0, 1), (2, 0, 2))
    for each in (1, 2):
        table.set_aggregates(at(table, each), frozenset({"a"}))
    assert table.forest.sharing == frozenset()
    table.ensure_trait(SHARES)[at(table, 2)] = True
    table.set_traits(at(table, 2), frozenset({SHARES}))
    forest = table.forest
    assert forest.sharing == {at(table, 2)}
    assert [forest.lending.of(int(number)) for number in forest.lenders] == [[1], []]


def test_capacity_is_kept_whole_beside_what_a_double_counts_exactly() -> None:
    table = table_of((1, 0, 1))
    table.ensure_class("VCPU")
    table.set_capacity("VCPU", [at(table, 1)], np.array([2.0**70]))
    assert table.capacities["VCPU"][0] == 2.0**70
    assert table.free["VCPU"][0] == 2.0**53


def test_equal_sets_of_traits_are_one_tuple_in_order() -> None:
    table = table_of((1, 0, 1), (2, 0, 2))
    for each in (1, 2):
        table.set_traits(at(table, each), frozenset({"B", "A"}))
    assert table.trait_names[0] == ("A", "B")
    assert table.trait_names[0] is table.trait_names[1]


def test_a_cleared_row_has_nothing_left() -> None:
    table = table_of((1, 0, 1))
    table.ensure_class("VCPU")
    table.set_capacity("VCPU", [at(table, 1)], np.array([4.0]))
    table.clear_row(at(table, 1))
    assert table.capacities["VCPU"][0] == table.free["VCPU"][0] == 0.0


def test_a_trait_without_providers_matches_no_row() -> None:
    table = table_of((1, 0, 1))
    assert table.has_trait(["CUSTOM_UNHEARD_OF"]).tolist() == [False]
