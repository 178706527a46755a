"""The search for candidates: its order, its bounds, and the low cost of a small limit."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates, RequestGroup
from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.placement import SHARES
from innkeeper.domain.slices import Placing
from innkeeper.scheduling.candidates import finding, search
from innkeeper.scheduling.candidates.search import Search
from innkeeper.scheduling.candidates.slots import slots_of
from innkeeper.scheduling.dice import Shuffler
from innkeeper.snapshot.providers import ProviderTable

DEPTH = Placing(allocation_candidates_generation_strategy="depth-first")
BREADTH = Placing(allocation_candidates_generation_strategy="breadth-first")


class Cloud:
    """A table that grows by one provider at a time; uuids are their names."""

    def __init__(self) -> None:
        self.table = ProviderTable()

    def add(
        self,
        name: str,
        amounts: Mapping[str, int],
        *,
        below: str | None = None,
        max_unit: int = 1000,
        aggregates: str = "",
        traits: tuple[str, ...] = (),
    ) -> None:
        table = self.table
        provider = ProviderId(table.row_count + 1)
        table.add([(provider, ProviderUuid(name))])
        index = table.index_of[provider]
        parent, root = ProviderId(0), provider
        if below is not None:
            above = table.row_of[ProviderUuid(below)]
            parent = ProviderId(int(table.provider_ids[above]))
            root = ProviderId(int(table.root_ids[above]))
        table.set_family(index, parent, root)
        for resource_class, total in amounts.items():
            table.ensure_class(resource_class)
            table.set_capacity(resource_class, [index], np.array([float(total)]))
            table.set_units(resource_class, index, (1.0, float(max_unit), 1.0))
        for trait in traits:
            table.ensure_trait(trait)[index] = True
        table.set_traits(index, frozenset(traits))
        table.set_aggregates(index, frozenset(aggregates))


def flat(hosts: int) -> ProviderTable:
    cloud = Cloud()
    for number in range(hosts):
        cloud.add(f"host{number}", {"VCPU": 8})
    return cloud.table


def with_devices(hosts: int, devices: int, each: int = 1) -> ProviderTable:
    cloud = Cloud()
    for number in range(hosts):
        cloud.add(f"host{number}", {"VCPU": 8})
        for device in range(devices):
            cloud.add(f"host{number}-{device}", {"PGPU": each}, below=f"host{number}")
    return cloud.table


def some(resource_class: str, amount: int = 1, suffix: str = "") -> RequestGroup:
    return RequestGroup(suffix, {resource_class: amount})


def devices(count: int) -> tuple[RequestGroup, ...]:
    return tuple(some("PGPU", suffix=f"_{number}") for number in range(count))


def roots(found: FoundCandidates) -> list[str]:
    return [min(candidate.allocations, key=len) for candidate in found.candidates]


def chosen(found: FoundCandidates) -> list[tuple[str, ...]]:
    """The devices of each candidate, in the order of the groups."""
    return [
        tuple(each.mappings[suffix][0] for suffix in sorted(each.mappings) if suffix)
        for each in found.candidates
    ]


def test_breadth_first_looks_at_every_tree_before_it_looks_again() -> None:
    query = CandidateQuery((some("VCPU"), *devices(1)), limit=4)
    found = finding.find(with_devices(3, 2), query, BREADTH)
    assert roots(found) == ["host0", "host1", "host2", "host0"]


def test_depth_first_takes_all_of_a_tree_before_the_next() -> None:
    query = CandidateQuery((some("VCPU"), *devices(1)), limit=4)
    found = finding.find(with_devices(3, 2), query, DEPTH)
    assert roots(found) == ["host0", "host0", "host1", "host1"]


@pytest.mark.parametrize("placing", [DEPTH, BREADTH])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_groups_apart_get_all_arrangements_of_devices(placing: Placing, count: int) -> None:
    query = CandidateQuery(devices(count), is_isolated=True)
    found = finding.find(with_devices(1, 3), query, placing)
    names = [f"host0-{number}" for number in range(3)]
    assert sorted(chosen(found)) == sorted(permutations(names, count))
    assert not found.is_cut


def test_groups_together_get_all_combinations_that_fit() -> None:
    query = CandidateQuery(devices(3))
    found = finding.find(with_devices(1, 2, each=2), query, BREADTH)
    names = ["host0-0", "host0-1"]
    fitting = [each for each in product(names, repeat=3) if len(set(each)) == 2]
    assert sorted(chosen(found)) == sorted(fitting)


def test_amounts_that_meet_stay_below_the_largest_that_is_given() -> None:
    cloud = Cloud()
    cloud.add("host", {"VCPU": 100}, max_unit=3)
    query = CandidateQuery((some("VCPU", 2, "_1"), some("VCPU", 2, "_2")))
    assert finding.find(cloud.table, query, BREADTH).candidates == []


def test_the_bound_of_the_settings_cuts_a_search() -> None:
    placing = Placing(max_allocation_candidates=5)
    found = finding.find(flat(6), CandidateQuery((some("VCPU"),)), placing)
    assert (len(found.candidates), found.is_cut) == (5, True)
    found = finding.find(flat(4), CandidateQuery((some("VCPU"),)), placing)
    assert (len(found.candidates), found.is_cut) == (4, False)


@pytest.mark.parametrize("limit", [1, 4, 5])
def test_the_limit_of_a_query_does_not_count_as_cut(limit: int) -> None:
    placing = Placing(max_allocation_candidates=5)
    found = finding.find(flat(6), CandidateQuery((some("VCPU"),), limit=limit), placing)
    assert (len(found.candidates), found.is_cut) == (limit, False)


def test_eight_groups_for_seven_devices_are_known_to_be_hopeless() -> None:
    table = with_devices(50, 7)
    query = CandidateQuery(devices(8), is_isolated=True)
    looking = Search(table, query, slots_of(table, query))
    assert [picks for tree in range(50) for picks in looking.of_tree(tree)] == []
    assert not looking.is_cut


def test_more_than_there_is_in_all_is_known_to_be_hopeless() -> None:
    table = with_devices(50, 6, each=2)
    query = CandidateQuery(devices(13))
    looking = Search(table, query, slots_of(table, query))
    assert [picks for tree in range(50) for picks in looking.of_tree(tree)] == []
    assert not looking.is_cut


def test_a_million_candidates_cost_no_more_than_the_limit() -> None:
    table = with_devices(1, 20)
    query = CandidateQuery(devices(8), is_isolated=True, limit=100)
    found = finding.find(table, query, BREADTH)
    assert len(set(chosen(found))) == 100


def test_a_search_with_too_many_dead_ends_is_cut() -> None:
    cloud = Cloud()
    cloud.add("host", {"VCPU": 8})
    # Sixteen groups on fifteen devices with room for one group each: a slow search.
    for number in range(15):
        cloud.add(f"device{number}", {"PGPU": 3}, below="host")
    groups = tuple(some("PGPU", 2, suffix=f"_{number}") for number in range(16))
    found = finding.find(cloud.table, CandidateQuery(groups), BREADTH)
    assert (found.candidates, found.is_cut) == ([], True)


def test_dead_ends_of_many_trees_add_up() -> None:
    table = with_devices(200, 8, each=3)
    query = CandidateQuery(tuple(some("PGPU", 2, suffix=f"_{each}") for each in range(9)))
    looking = Search(table, query, slots_of(table, query))
    for tree in range(200):
        assert list(looking.of_tree(tree)) == []
    assert looking.is_cut
    assert search.DEAD_ENDS < 200 * search.DEAD_ENDS_PER_TREE, "or this shows nothing"
    assert not looking.may_go_on(0, 0)


def test_the_order_is_random_on_request_and_repeats_with_its_seed() -> None:
    query = CandidateQuery((some("VCPU"),))
    in_order = roots(finding.find(flat(50), query, BREADTH))
    first, again, other = (
        roots(finding.find(flat(50), query, BREADTH, Shuffler(seed))) for seed in (1, 1, 2)
    )
    assert first == again
    assert len({tuple(in_order), tuple(first), tuple(other)}) == 3
    assert sorted(first) == sorted(other) == sorted(in_order)


def test_what_only_pools_give_is_found_once_however_many_trees_they_serve() -> None:
    cloud = Cloud()
    cloud.add("pool", {"DISK_GB": 100}, aggregates="a", traits=(SHARES,))
    for number in range(3):
        cloud.add(f"host{number}", {"VCPU": 8}, aggregates="a")
    found = finding.find(cloud.table, CandidateQuery((some("DISK_GB"),)), BREADTH)
    assert [each.allocations for each in found.candidates] == [{"pool": {"DISK_GB": 1}}]
    both = CandidateQuery((RequestGroup(resources={"VCPU": 1, "DISK_GB": 1}),))
    assert sorted(roots(finding.find(cloud.table, both, BREADTH))) == [
        "pool", "pool", "pool",
    ]  # fmt: skip


def many_pools(pools: int, hosts: int) -> ProviderTable:
    """Hosts that are served by pools of two kinds."""
    cloud = Cloud()
    for number in range(pools):
        for kind in ("DISK_GB", "CUSTOM_CARD"):
            cloud.add(f"{kind}{number}", {kind: 9}, aggregates="a", traits=(SHARES,))
    for number in range(hosts):
        cloud.add(f"host{number}", {"VCPU": 8}, aggregates="a")
    return cloud.table


@pytest.mark.parametrize("suffixes", [("", ""), ("_1", "_2")])
def test_what_only_pools_give_is_walked_once_not_under_every_tree(
    suffixes: tuple[str, str],
) -> None:
    table = many_pools(6, 40)
    first, second = suffixes
    groups: tuple[RequestGroup, ...] = (RequestGroup(resources={"DISK_GB": 1, "CUSTOM_CARD": 1}),)
    if first:
        groups = (some("DISK_GB", suffix=first), some("CUSTOM_CARD", suffix=second))
    query = CandidateQuery(groups)
    looking = Search(table, query, slots_of(table, query))
    found = [list(looking.of_tree(tree)) for tree in range(table.forest.tree_count)]
    assert sorted(map(len, found)) == [0] * (len(found) - 1) + [36]


def test_pools_beside_what_a_host_has_itself_are_combined_under_each_host() -> None:
    cloud = Cloud()
    for number in range(3):
        cloud.add(f"pool{number}", {"DISK_GB": 9, "VCPU": 9}, aggregates="a", traits=(SHARES,))
    for number in range(4):
        cloud.add(f"host{number}", {"VCPU": 8, "DISK_GB": 9}, aggregates="a")
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1, "DISK_GB": 1}),))
    found = finding.find(cloud.table, query, BREADTH)
    ways = {tuple(sorted(each.allocations)) + tuple(map(str, each.allocations.items()))
            for each in found.candidates}  # fmt: skip
    # Both groups from pools: 3 x 3 ways, counted once. For each host: both from the host, or one
    # from the host and one from a pool.
    assert len(found.candidates) == len(ways) == 9 + 4 * (1 + 3 + 3)


def test_a_search_stops_when_the_client_is_gone() -> None:
    table = with_devices(50, 8, each=3)
    groups = tuple(some("PGPU", 2, suffix=f"_{each}") for each in range(9))
    asked: list[int] = []

    def goes_on() -> bool:
        asked.append(1)
        return len(asked) < 5

    found = finding.find(table, CandidateQuery(groups), BREADTH, goes_on=goes_on)
    assert found.is_cut
    assert len(asked) < 60


def test_repeated_same_subtrees_count_once() -> None:
    table = with_devices(1, 8)
    groups = devices(6)
    said = frozenset(each.suffix for each in groups)
    once = CandidateQuery(groups, same_subtrees=(said,))
    often = CandidateQuery(groups, same_subtrees=(said,) * 500)
    assert finding.find(table, often, BREADTH) == finding.find(table, once, BREADTH)


def test_a_search_leaves_nothing_to_the_garbage_collector() -> None:
    table = with_devices(3, 4)
    groups = devices(3)
    query = CandidateQuery(
        (RequestGroup(resources={"VCPU": 1}, required=(frozenset({"T"}),)), *groups),
        is_isolated=True,
        same_subtrees=(frozenset(each.suffix for each in groups),),
    )
    gc.collect()
    gc.disable()
    try:
        looking = Search(table, query, slots_of(table, query))
        for tree in range(3):
            list(looking.of_tree(tree))
        left: list[Any] = [weakref.ref(looking), weakref.ref(looking.slots[0].own.rows)]
        del looking
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()


def test_the_longest_answer_is_bounded_by_its_parts_too() -> None:
    table = with_devices(1, 12)
    query = CandidateQuery(devices(12), is_isolated=True)
    most = finding.PARTS_MAX // 12
    found = finding.find(table, query, Placing(max_allocation_candidates=2 * most))
    assert (len(found.candidates), found.is_cut) == (most, True)


def test_no_filters_give_no_verdicts() -> None:
    found = finding.find(ProviderTable(), CandidateQuery((some("VCPU"),)), BREADTH)
    assert (found.candidates, found.summaries, found.is_cut) == ([], {}, False)
