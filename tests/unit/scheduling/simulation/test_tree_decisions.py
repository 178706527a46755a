"""Decisions in a tree of zones: offsets and scales, merging, stale offers and late answers."""

from __future__ import annotations

import pytest

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.domain.placing import Entry
from innkeeper.scheduling.simulation.tree_decisions import (
    IN_TURN,
    TreeOffer,
    TreeOptions,
    TreePlanner,
    merged_by_weight,
    merged_in_turn,
)
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.scheduling.simulation.zone_trees import SimulatedZone, uniform
from tests.support.workloads import Row, forever, hosts_of, workload_of
from tests.support.zone_trees import TreeReplay, tree_of, unlike_hosts

A, B = SimulatedZone("a"), SimulatedZone("b")


def offers(zone: int, *weights: float) -> list[TreeOffer]:
    entry = Entry(HostIndex(0), ProviderId(1), "h", 0.0)
    return [TreeOffer(weight, zone, entry) for weight in weights]


def told(merged: list[TreeOffer]) -> list[tuple[int, float]]:
    return [(offer.zone, offer.weight) for offer in merged]


def test_offers_are_merged_by_weight_and_earlier_zones_win_ties() -> None:
    found = [offers(0, 3, 1), offers(1, 3, 2), offers(2, 4)]
    best = [(2, 4), (0, 3), (1, 3), (1, 2)]
    assert told(merged_by_weight(found, 4)) == best
    assert told(merged_in_turn(found, 4)) == best
    assert told(merged_in_turn(found, 9)) == [*best, (0, 1)]


def test_a_zone_that_packs_offers_its_later_servers_for_more() -> None:
    """The second server on a host has a higher weight than the first, but needs the first."""
    found = [offers(1, 5, 7, 9), offers(2, 6, 6.5, 6.6)]
    assert told(merged_by_weight(found, 3)) == [(1, 9), (1, 7), (2, 6.6)]
    assert told(merged_in_turn(found, 3)) == [(2, 6), (2, 6.5), (2, 6.6)]


def one_by_one(count: int, shape: int = 0, every_s: float = 10.0) -> Workload:
    rows: list[Row] = [(every_s * n, forever(), shape, n) for n in range(count)]
    return workload_of(rows)


def planner_of(replay: TreeReplay) -> TreePlanner:
    assert replay.tree is not None
    return replay.tree


def placed_by_zone(replay: TreeReplay) -> dict[str, int]:
    return {zone.name: zone.placed for zone in planner_of(replay).figures().zones}


def test_offset_and_scale_apply_at_every_level() -> None:
    leaf = SimulatedZone("leaf", weight_offset=10.0, weight_scale=3.0)
    inner = SimulatedZone("inner", 0.0, weight_offset=5.0, weight_scale=2.0, zones=(leaf,))
    workload = one_by_one(1)
    table_scale = 256.0
    replay = TreeReplay(workload, hosts_of(1), tree_of(inner), weighers=("FreeVcpusWeigher",))
    made = planner_of(replay).plan(replay.table, replay.replay._spec(workload.shapes[0], 1, 0, 1))
    assert made.entries[0].weight == 5 + 2 * (10 + 3 * (8 / table_scale))


def test_a_zone_with_an_offset_is_filled_first() -> None:
    first = SimulatedZone("first", weight_offset=100.0)
    replay = TreeReplay(one_by_one(10), hosts_of(2), tree_of(B, first))
    assert replay.run().refused.sum() == 0
    assert placed_by_zone(replay) == {"b": 2, "first": 8}


def test_hosts_of_the_zone_itself_win_ties() -> None:
    replay = TreeReplay(one_by_one(1), hosts_of(2), tree_of(A, share=1.0))
    replay.run()
    assert placed_by_zone(replay) == {"root": 1, "a": 0}


def test_calls_are_counted_by_level() -> None:
    replay = TreeReplay(one_by_one(5), hosts_of(4), uniform("2x2", [2, 2]))
    replay.run()
    calls = planner_of(replay).calls
    assert (calls.boots, calls.attempts, calls.plans) == (5, 5, 20)
    assert calls.selects == 5 * 6
    assert calls.creates == 5 * 2
    # There is one offer of each leaf, and one of each zone above.
    assert calls.offers == 5 * 6
    assert (calls.stale, calls.late) == (0, 0)


def test_a_view_that_lags_gives_stale_offers_and_nothing_is_oversold() -> None:
    # Every host has room for two servers of four cores.
    workload = one_by_one(8, shape=1, every_s=1.0)
    options = TreeOptions(lag_s=100.0)
    replay = TreeReplay(workload, hosts_of(4), tree_of(A, B), options=options, weighers=("pack",))
    outcome = replay.run()
    assert outcome.refused.sum() == 0
    calls = planner_of(replay).calls
    assert calls.stale > 0
    assert calls.attempts > calls.boots
    assert sum(zone.stale for zone in planner_of(replay).figures().zones) == calls.stale
    assert replay.table.free["VCPU"].tolist() == [0.0] * 4


def test_without_more_attempts_a_stale_offer_is_a_refusal() -> None:
    workload = one_by_one(8, shape=1, every_s=1.0)
    options = TreeOptions(lag_s=100.0, attempts_max=1)
    replay = TreeReplay(workload, hosts_of(4), tree_of(A, B), options=options, weighers=("pack",))
    assert replay.run().refused.sum() == planner_of(replay).calls.stale > 0


def test_the_view_shows_changes_after_the_lag() -> None:
    workload = one_by_one(8, shape=1, every_s=1.0)
    replay = TreeReplay(workload, hosts_of(4), tree_of(A, B), options=TreeOptions(lag_s=0.5))
    assert replay.run().refused.sum() == 0
    assert planner_of(replay).calls.stale == 0


@pytest.mark.parametrize(("late", "refused"), [(0.0, 0), (1.0, 5)])
def test_late_answers_are_ignored(late: float, refused: int) -> None:
    options = TreeOptions(late=late)
    replay = TreeReplay(one_by_one(5), hosts_of(4), tree_of(A, B), options=options)
    assert replay.run().refused.sum() == refused
    assert planner_of(replay).calls.late == 2 * refused


def test_some_late_answers_leave_the_other_zones() -> None:
    options = TreeOptions(late=0.3)
    replay = TreeReplay(one_by_one(40), hosts_of(20), uniform("9", [9]), options=options)
    assert replay.run().refused.sum() == 0
    assert 40 < planner_of(replay).calls.late < 160


def test_the_use_of_zones_is_sampled() -> None:
    first = SimulatedZone("first", weight_offset=100.0)
    replay = TreeReplay(one_by_one(16), hosts_of(2), tree_of(first, B))
    replay.run()
    by_name = {zone.name: zone.used["VCPU"] for zone in planner_of(replay).figures().zones}
    assert by_name["first"] > 2 * by_name["b"] > 0


def test_servers_of_a_request_that_packs_stay_together_when_merged_in_turn() -> None:
    rows: list[Row] = [(0.0, forever(), 0, 0)] * 4
    options = TreeOptions(merge=IN_TURN)
    replay = TreeReplay(
        workload_of(rows), unlike_hosts([2, 2]), tree_of(A, B), options=options, weighers=("pack",)
    )
    replay.run()
    assert len(set(replay.homes[0])) == 1
