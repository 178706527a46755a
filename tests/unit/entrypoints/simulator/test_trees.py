"""Trees of zones on the command line and in files, and their results."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator import options, plain_results, tables
from innkeeper.entrypoints.simulator.policies import parse as parse_policies
from innkeeper.entrypoints.simulator.running import Results, Simulation
from innkeeper.entrypoints.simulator.trees import parse
from innkeeper.scheduling.simulation import tree_decisions, zone_trees
from innkeeper.scheduling.simulation.replay import ReplayOptions
from innkeeper.scheduling.simulation.zone_trees import SimulatedTree, SimulatedZone
from innkeeper.terminal.progress import Lines
from tests.support.workloads import Row, forever, hosts_of, workload_of

FILE = """
share = 1
weighers = "pack"

[[zones]]
name = "north"
share = 3
weight_offset = -1
weight_scale = 2.5
driver = "chance"

[[zones]]
name = "south"
[[zones.zones]]
name = "south-1"
"""


def written(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_describes_zones_and_their_own_policies(tmp_path: Path) -> None:
    (tree,) = parse([written(tmp_path, FILE)], "contiguous")
    assert (tree.name, tree.deal) == ("own", "contiguous")
    north, south = tree.root.zones
    assert north == SimulatedZone("north", 3.0, -1.0, 2.5, changes={"driver": "chance"})
    assert south == SimulatedZone("south", 0.0, zones=(SimulatedZone("south-1"),))
    assert (tree.root.name, tree.root.share) == ("root", 1.0)
    assert tree.root.changes == {"weighers": "pack"}


def test_numbers_are_widths() -> None:
    one, wide, deep = parse(["1", "20", "3x2"])
    assert one.is_alone
    assert len(wide.root.zones) == 20
    assert [len(zone.zones) for zone in deep.root.zones] == [2, 2, 2]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("[[zones]]\nshare = 1", "needs a name"),
        ('[[zones]]\nname = "a"\nweight_scale = 0', "above 0"),
        ('[[zones]]\nname = "a"\nshare = -1', "negative"),
        ('[[zones]]\nname = "a"\nweight_offset = inf', "must be a number"),
        ('[[zones]]\nname = "a"\nweight_offset = true', "must be a number"),
        ('[[zones]]\nname = "a"\nhosts = 3', "unknown keys: hosts"),
        ('[[zones]]\nname = "a"\nweighers = 3', "weighers must be a text"),
        ('[[zones]]\nname = "a"\n[[zones]]\nname = "a"', "same name"),
        ("weight_offset = 1", "unknown keys: weight_offset"),
        ("zones = 3", "must be tables"),
        ("zones = [3]", "is not a table"),
        ("zones =", "is not valid TOML"),
    ],
)
def test_errors_in_files_say_where(tmp_path: Path, text: str, reported: str) -> None:
    with pytest.raises(Invalid, match=reported):
        parse([written(tmp_path, text)])


@pytest.mark.parametrize("texts", [["10 x 10"], ["nowhere.toml"], ["0"], ["9999"], ["5", "5"]])
def test_bad_trees_are_errors(texts: list[str]) -> None:
    with pytest.raises(Invalid):
        parse(texts)


def results_of(*trees: SimulatedTree) -> Results:
    rows: list[Row] = [(float(n), forever(), n % 3, n) for n in range(20)]
    policies = parse_policies(
        {"policy": ["p=pack"], "filters": None, "weighers": None, "driver": None}
    )
    return Simulation(
        workload_of(rows),
        hosts_of(6),
        policies,
        ReplayOptions(samples=5),
        clock=lambda: 0.0,
        progress=Lines(StringIO()),
        trees=trees,
    ).run(is_compact=False)


def test_results_compare_trees_with_the_flat_zone() -> None:
    results = results_of(*parse(["1", "3"]))
    assert [policy.name for policy, _ in results.outcomes] == [
        "p",
        "p, fixed scales",
        "p, tree 1",
        "p, tree 3",
    ]
    top = tables.summary(results)
    assert [line.split(":")[0] for line in top[2:]] == ["policy p", top[3], "tree 1", "tree 3"]
    titles = [table.title for table in tables.all_of(results)]
    assert "Zones of p, tree 3" in titles
    by_title = {table.title: table for table in tables.all_of(results)}
    calls = by_title["Calls and offers in trees, per request"]
    assert [row[:3] for row in calls.rows] == [
        ("p, tree 1", "0.00", "0.00"),
        ("p, tree 3", "3.00", "0.80"),
    ]
    assert len(by_title["Zones of p, tree 3"].rows) == 3


def test_many_zones_are_cut_short() -> None:
    (tree,) = parse(["6x6"])
    by_title = {table.title: table for table in tables.all_of(results_of(tree))}
    # Six hosts cannot be dealt to more than six zones.
    assert len(by_title["Zones of p, tree 6x6"].rows) == 6


def test_the_options_offer_what_the_simulation_knows() -> None:
    assert options.DEALS == zone_trees.DEALS
    assert options.MERGES == tree_decisions.MERGES


def test_results_are_json_too() -> None:
    plain = json.loads(plain_results.json_of(results_of(*parse(["3"]))))
    flat, fixed, tree = plain["replays"]
    assert flat["tree"] is fixed["tree"] is None
    assert flat["requested"] == tree["requested"] == 20
    assert tree["tree"]["calls"]["selects"] == 60
    assert sum(zone["placed"] for zone in tree["tree"]["zones"]) == tree["placed"]
    assert plain["hosts"] == [{"shape": "8c16g", "count": 6}]
