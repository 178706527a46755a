"""``openstack server explain`` shows what each zone of a tree would offer."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.cli.servers import rows_of

OWN: dict[str, Any] = {
    "hosts": 2,
    "candidates": 0,
    "servers": 0,
    "fault": "No valid host was found.",
    "removed": [],
    "chosen": [],
    "decided_by": {"driver": "all_at_once"},
}
EDGE = {
    "zone": "edge",
    "answer": "explained",
    "hosts": None,
    "candidates": None,
    "room": 1,
    "removed": [{"filter": "CapacityFilter", "removed": None}],
    "zones": [],
}
EAST = {**EDGE, "zone": "east", "hosts": 40, "candidates": 12, "removed": [], "zones": [EDGE]}


def test_a_tree_has_a_line_for_each_zone_and_each_server() -> None:
    tree = {
        "room": 2,
        "servers": 2,
        "chosen": [{"zones": ["east", "edge"], "weight": 0.91}, {"zones": [], "weight": 0.5}],
        "zones": [EAST, {"zone": "west", "answer": "silent"}],
    }
    rows = rows_of({**OWN, "tree": tree})
    assert rows["servers_in_tree"] == 2
    assert rows["chosen_in_tree"].splitlines() == ["east/edge 0.910", "this zone 0.500"]
    assert rows["zones"].splitlines() == [
        "east: 12 of 40 hosts, room 1",
        "east/edge: some of some hosts, room 1; some by CapacityFilter",
        "west: silent",
    ]


def test_a_user_sees_no_names() -> None:
    nameless = {name: value for name, value in EDGE.items() if name != "zone"}
    tree = {"servers": 1, "chosen": [{"weight": 0.91}], "zones": [nameless]}
    rows = rows_of({**OWN, "tree": tree})
    assert rows["chosen_in_tree"] == "0.910"
    assert rows["zones"] == "a zone: some of some hosts, room 1; some by CapacityFilter"


def test_without_a_tree_nothing_is_added() -> None:
    assert not {"servers_in_tree", "chosen_in_tree", "zones"} & rows_of(OWN).keys()
