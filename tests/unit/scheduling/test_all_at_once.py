"""All servers of a request at once: depletion, ties, subsets, and the table left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import BuildPlan
from innkeeper.scheduling.depletion import undo
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import Sketch, asking, host, picture, pipeline_of, plan, table_of

SPREAD = pipeline_of(FreeMemoryWeigher=1.0)
PACK = pipeline_of(FreeMemoryWeigher=-1.0)
ALL_ALIKE = pipeline_of()


def chosen(made: BuildPlan) -> list[str]:
    return [entry.host for entry in made.entries]


def place(pipeline: Pipeline, sketches: Sequence[Sketch], count: int = 1, **more: Any) -> list[str]:
    subset_size = more.pop("subset_size", 1)
    made = plan(pipeline, table_of(*sketches), asking(count=count, **more), subset_size)
    return chosen(made)


def uniform(count: int, **more: Any) -> list[Sketch]:
    return [host(f"h{number}", **more) for number in range(count)]


def test_the_heaviest_host_wins() -> None:
    hosts = [host("a", memory_mb=4000), host("b", memory_mb=9000), host("c", memory_mb=5000)]
    assert place(SPREAD, hosts) == ["b"]
    assert place(PACK, hosts) == ["a"]


def test_spreading_takes_each_pick_into_account() -> None:
    hosts = [host("big", memory_mb=5000), host("small", memory_mb=3500)]
    picks = place(SPREAD, hosts, 4, memory_mb=1000)
    # 5000/3500, 4000/3500, 3000/3500, 3000/2500
    assert picks == ["big", "big", "small", "big"]


def test_packing_fills_one_host_before_it_begins_the_next() -> None:
    hosts = [host("big", memory_mb=5000), host("small", memory_mb=3500)]
    picks = place(PACK, hosts, 5, memory_mb=1000)
    assert picks == ["small", "small", "small", "big", "big"]


@pytest.mark.parametrize("seed", range(5))
def test_a_uniform_cloud_is_spread_over_evenly(seed: int) -> None:
    picks = place(SPREAD, uniform(6), 12, seed=seed)
    assert set(Counter(picks[:6]).values()) == {1}
    assert set(Counter(picks).values()) == {2}


@pytest.mark.parametrize("seed", range(5))
def test_a_uniform_cloud_is_packed_one_host_after_the_other(seed: int) -> None:
    picks = place(PACK, uniform(6, vcpus=4), 12, seed=seed)
    assert [len(set(picks[start : start + 4])) for start in (0, 4, 8)] == [1, 1, 1]
    assert len(set(picks)) == 3


def test_a_host_that_is_full_is_not_picked_again() -> None:
    assert sorted(place(SPREAD, uniform(3, vcpus=2), 6)) == ["h0", "h0", "h1", "h1", "h2", "h2"]


def test_more_than_there_is_room_for_is_placed_as_far_as_it_goes() -> None:
    table = table_of(*uniform(2, vcpus=2))
    made = plan(SPREAD, table, asking(count=9))
    assert len(made.entries) == 4
    assert (made.hosts, made.candidates) == (2, 2)


def test_an_empty_table_gives_an_empty_plan() -> None:
    made = plan(SPREAD, HostTable(), asking(count=3))
    assert (made.entries, made.seen, made.hosts, made.candidates) == ((), {}, 0, 0)


def test_what_was_planned_is_off_the_table_and_undone_exactly() -> None:
    table = table_of(*uniform(3))
    before = picture(table)
    spec = asking(2, 100, 5, count=4)
    made = plan(SPREAD, table, spec)
    for name, amount in spec.amounts.items():
        taken = [chosen(made).count(host_name) * amount for host_name in table.names]
        assert list(table.used[name]) == taken
    assert picture(table) != before
    undo(table, spec, made)
    assert picture(table) == before


def test_seen_holds_each_provider_once_at_the_generation_it_had() -> None:
    table = table_of(host("a", generation=7), host("b", generation=9))
    made = plan(SPREAD, table, asking(count=6))
    assert made.seen == {ProviderId(1): 7, ProviderId(2): 9}
    assert table.generation(table.index_by_name["a"]) == 7, "a plan is no claim"
    assert {entry.provider_id for entry in made.entries} == made.seen.keys()


def test_a_forced_host_gets_all_of_them_or_as_many_as_fit() -> None:
    hosts = uniform(3, vcpus=4)
    assert place(SPREAD, hosts, 3, forced_host="h1") == ["h1"] * 3
    assert place(SPREAD, hosts, 6, forced_host="h1") == ["h1"] * 4
    assert place(SPREAD, hosts, 1, forced_host="nobody") == []


def test_a_forced_host_must_pass_the_other_filters_too() -> None:
    assert place(SPREAD, [host("a", is_open=False), host("b")], forced_host="a") == []


def test_ties_are_broken_by_the_seed_alone() -> None:
    hosts = uniform(8)
    picks = [place(ALL_ALIKE, hosts, 5, seed=seed) for seed in range(40)]
    assert picks == [place(ALL_ALIKE, hosts, 5, seed=seed) for seed in range(40)]
    assert len({tuple(each) for each in picks}) > 30


def shares(hosts: Sequence[Sketch], subset_size: int, throws: int = 2000) -> dict[str, float]:
    table, counts = table_of(*hosts), Counter[str]()
    for seed in range(throws):
        spec = asking(seed=seed)
        made = plan(SPREAD, table, spec, subset_size)
        undo(table, spec, made)
        counts.update(chosen(made))
    return {name: count / throws for name, count in counts.items()}


@pytest.mark.parametrize("subset_size", [1, 2, 3, 10, 50])
def test_equal_hosts_are_equally_likely_whatever_the_subset_size(subset_size: int) -> None:
    got = shares(uniform(10), subset_size)
    assert len(got) == 10
    assert all(share == pytest.approx(0.1, abs=0.04) for share in got.values())


STAIRS = [host(f"h{step}", memory_mb=10_000 + 1000 * step) for step in range(5)]


@pytest.mark.parametrize(
    ("subset_size", "names"),
    [
        pytest.param(1, {"h4"}, id="one is the best"),
        pytest.param(2, {"h4", "h3"}, id="two are the two best"),
        pytest.param(5, {"h0", "h1", "h2", "h3", "h4"}, id="as many as there are is all"),
        pytest.param(99, {"h0", "h1", "h2", "h3", "h4"}, id="more than there are is all"),
    ],
)
def test_a_subset_is_that_many_of_the_best(subset_size: int, names: set[str]) -> None:
    got = shares(STAIRS, subset_size)
    assert got.keys() == names
    assert all(share == pytest.approx(1 / len(names), abs=0.05) for share in got.values())


def test_hosts_that_tie_for_the_last_place_of_a_subset_share_it() -> None:
    hosts = [host("best", memory_mb=9000), *uniform(5, memory_mb=5000)]
    got = shares(hosts, 2)
    assert got.pop("best") == pytest.approx(0.5, abs=0.05)
    assert len(got) == 5
    assert all(share == pytest.approx(0.1, abs=0.04) for share in got.values())


def test_a_subset_never_holds_a_host_that_is_full() -> None:
    hosts = [host("tight", vcpus=1, memory_mb=90_000), *uniform(2, vcpus=3)]
    for seed in range(30):
        picks = place(SPREAD, hosts, 9, seed=seed, subset_size=3)
        assert Counter(picks) == {"tight": 1, "h0": 3, "h1": 3}


def test_a_single_host_is_a_subset_of_one() -> None:
    assert place(SPREAD, uniform(1, vcpus=2), 4, subset_size=5) == ["h0", "h0"]


def test_servers_that_ask_for_no_amount_take_nothing() -> None:
    table = table_of(*uniform(2))
    before = picture(table)
    made = plan(SPREAD, table, asking(0, 0, 0, count=5))
    assert len(made.entries) == 5
    assert picture(table) == before


def test_removals_have_missing_texts_only_after_a_failure() -> None:
    hosts = [host("a"), host("small", vcpus=0)]
    (enough,) = plan(SPREAD, table_of(*hosts), asking()).removals
    assert (enough.filter_name, enough.removed, enough.missing) == ("CapacityFilter", 1, "")
    (short,) = plan(SPREAD, table_of(*hosts), asking(count=99)).removals
    assert "VCPU: 1 requested" in short.missing
