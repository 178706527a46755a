"""Trees of zones choose the hosts that one flat zone with the same hosts chooses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.scheduling.simulation.tree_decisions import IN_TURN, MERGES, TreeOptions
from innkeeper.scheduling.simulation.workload import ServerShape, Workload
from innkeeper.scheduling.simulation.zone_trees import DEALS, SimulatedTree, SimulatedZone, uniform
from tests.support.tables import picture
from tests.support.workloads import Row, forever, hosts_of, workload_of
from tests.support.zone_trees import STEP_MB, TreeReplay, unlike_hosts

SHAPES = tuple(
    ServerShape(f"{cores}c", {"VCPU": cores, "MEMORY_MB": STEP_MB * steps})
    for cores, steps in ((1, 1), (2, 1), (2, 3))
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 40).map(float),
        st.integers(0, 30).map(float) | st.just(forever()),
        st.integers(0, 2),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=30,
)
SHARES = st.sampled_from([0.0, 1.0, 1.0, 2.5])


@st.composite
def trees(draw: st.DrawFn) -> SimulatedTree:
    """Draw a tree in which zones on all levels may have hosts."""
    numbers = iter(range(100))

    def zone(level: int) -> SimulatedZone:
        below = tuple(zone(level + 1) for _ in range(draw(st.integers(0, 3)))) if level < 2 else ()
        share = draw(SHARES) if below else 1.0
        return SimulatedZone(f"z{next(numbers)}", share, zones=below)

    return SimulatedTree("drawn", zone(0), draw(st.sampled_from(DEALS)))


def alone(rows: list[Row]) -> list[Row]:
    """Return the same servers, each requested by itself."""
    return [(*row[:3], number) for number, row in enumerate(rows)]


SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    weighers=st.sampled_from(["spread", "pack", "fill", "ProjectSpreadWeigher"]),
    merge=st.sampled_from(MERGES),
    seed=st.integers(0, 2**63 - 1),
)
def test_a_tree_of_one_zone_is_the_flat_zone(
    rows: list[Row], weighers: str, merge: str, seed: int
) -> None:
    """Both choose exactly the same, with the same draws among equal hosts."""
    workload = workload_of(rows)
    flat = TreeReplay(workload, hosts_of(4), weighers=(weighers,), seed=seed)
    tree = TreeReplay(
        workload,
        hosts_of(4),
        uniform("1", []),
        weighers=(weighers,),
        options=TreeOptions(merge=merge),
        seed=seed,
    )
    outcomes = flat.run(), tree.run()
    assert flat.homes == tree.homes
    assert picture(flat.table) == picture(tree.table)
    assert outcomes[0].refused.tolist() == outcomes[1].refused.tolist()
    assert np.array_equal(outcomes[0].samples.used["VCPU"], outcomes[1].samples.used["VCPU"])


def compare(
    workload: Workload, sizes: list[int], tree: SimulatedTree, weighers: str, merge: str
) -> None:
    groups = unlike_hosts(sizes)
    flat = TreeReplay(workload, groups, weighers=(weighers,), has_fixed_scales=True)
    options = TreeOptions(merge=merge)
    divided = TreeReplay(
        workload, groups, tree, weighers=(weighers,), options=options, has_fixed_scales=True
    )
    flat.run()
    divided.run()
    assert flat.homes == divided.homes


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, sizes=SIZES, tree=trees(), weighers=st.sampled_from(["spread", "pack"]))
def test_merged_in_turn_a_tree_chooses_as_one_zone(
    rows: list[Row], sizes: list[int], tree: SimulatedTree, weighers: str
) -> None:
    compare(workload_of(rows, SHAPES), sizes, tree, weighers, IN_TURN)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, sizes=SIZES, tree=trees(), weighers=st.sampled_from(["spread", "pack"]))
def test_single_servers_get_the_same_hosts_however_offers_are_merged(
    rows: list[Row], sizes: list[int], tree: SimulatedTree, weighers: str
) -> None:
    for merge in MERGES:
        compare(workload_of(alone(rows), SHAPES), sizes, tree, weighers, merge)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, sizes=SIZES, tree=trees(), merge=st.sampled_from(MERGES))
def test_a_policy_that_spreads_gets_the_same_hosts_however_offers_are_merged(
    rows: list[Row], sizes: list[int], tree: SimulatedTree, merge: str
) -> None:
    """Each server lowers the weight of its host, so a plan's weights are in descending order."""
    compare(workload_of(rows, SHAPES), sizes, tree, "spread", merge)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    tree=trees(),
    lag_s=st.sampled_from([0.0, 1.0, 5.0, 1000.0]),
    late=st.sampled_from([0.0, 0.2, 0.9]),
)
def test_nothing_is_oversold_and_all_comes_back(
    rows: list[Row], tree: SimulatedTree, lag_s: float, late: float
) -> None:
    groups = unlike_hosts([2, 3, 1, 2])
    replay = TreeReplay(
        workload_of(rows, SHAPES), groups, tree, options=TreeOptions(lag_s=lag_s, late=late)
    )
    before = picture(replay.table)
    replay.run()
    assert all((column >= 0).all() for column in replay.table.free.values())
    replay.replay.leave_all()
    assert picture(replay.table) == before
