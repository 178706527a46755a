"""A table that is read from a recording is complete, whatever decisions read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from innkeeper.domain.ids import Bookmark, ChangeId, ClassId, ProviderId
from innkeeper.scheduling import recordings
from innkeeper.snapshot import recording
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.recording import Moment
from tests.support.tables import Pool, add_pools, host, table_of

WORKED_OUT = frozenset(
    {
        "_capability_columns",
        "_greatest",
        "_has_hosts",
        "_kinds",
        "_lenders",
        "_silent_since_s",
        "_stale_since_s",
        "_unit_bounds",
    }
)
"""Derived attributes, computed on first use."""
NOT_OF_THE_MOMENT = frozenset({"edits", "epoch", "_codes_max", "_rows", "_lists", "_full"})
"""Records of edits for caches, and the memory of the columns."""
AGGREGATE = 7
COLUMNS_OF_VERSION_5 = frozenset(
    {
        "agent_codes",
        "aggregate_codes",
        "busy_counts",
        "facts_seen_s",
        "generations",
        "ip_high",
        "ip_low",
        "ip_versions",
        "is_open",
        "is_pcloud_open",
        "membership_codes",
        "needed_from_s",
        "pcloud_codes",
        "provider_ids",
        "root_ids",
        "server_counts",
        "zone_codes",
    }
)
"""The names of columns in files of version 5. A changed name needs a new version."""


def furnished() -> HostTable:
    """A table with some data of every kind."""
    table = table_of(
        host("a", traits=("T",), capabilities={"cores": 4}, aggregates=frozenset("x")),
        host("b", zone="south", agent="another", used={"VCPU": 3}),
        host("c", is_open=False, units={"VCPU": (2, 8, 2)}, generation=9),
    )
    add_pools(table, Pool({"DISK_GB": 40}, frozenset("x"), used={"DISK_GB": 2}))
    table.bookmark = Bookmark(ChangeId(17), None)
    table.class_ids["VCPU"] = ClassId(3)
    table.knows_servers = True
    table.residents.replace(ProviderId(2), {"red": 2})
    table.server_counts[1] = table.busy_counts[1] = 2
    table.aggregates.set_metadata(AGGREGATE, {"ssd": "true"})
    table.aggregate_codes[0] = table.aggregates.code(frozenset({AGGREGATE}))
    table.ip_versions[:], table.ip_low[:], table.ip_high[:] = 6, 2**63, 2**64 - 1
    return table


def again(table: HostTable) -> HostTable:
    """Convert a table to the content of a file, and back."""
    moment = recording.copy_of(table)
    return recording.table_of(moment.columns, json.loads(json.dumps(recording.plain(moment.state))))


def state_of(thing: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(thing).items()
        if name not in WORKED_OUT | NOT_OF_THE_MOMENT
    }


def compare(found: Any, expected: Any, where: str) -> None:
    """Compare everything that these objects hold, name by name."""
    mine, theirs = state_of(found), state_of(expected)
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, np.ndarray):
            assert mine[name].dtype == value.dtype, f"{where}.{name}"
            assert np.array_equal(mine[name], value), f"{where}.{name}"
        elif isinstance(value, dict) and name in ("free", "used", "traits", "_keyed"):
            assert mine[name].keys() == value.keys(), f"{where}.{name}"
        elif hasattr(value, "__dict__"):
            compare(mine[name], value, f"{where}.{name}")
        else:
            assert str(mine[name]) == str(value), f"{where}.{name}"


def test_nothing_that_a_table_holds_is_forgotten() -> None:
    table = furnished()
    found = again(table)
    compare(found, table, "table")
    for mine, theirs in ((found, table), (found.pools, table.pools)):
        assert mine.columns().keys() == theirs.columns().keys()
        for key, column in theirs.columns().items():
            assert mine.columns()[key].tobytes() == column.tobytes(), key


def test_files_have_the_columns_of_their_version() -> None:
    """Files have fixed names, whatever the program calls its columns."""
    assert recordings.VERSION == 5
    moment = recording.copy_of(furnished())
    start = "hosts/fact/"
    found = {each.removeprefix(start) for each in moment.columns if each.startswith(start)}
    assert found == COLUMNS_OF_VERSION_5
    assert {"pclouds", "pcloud_names"} <= moment.state.keys()


@pytest.mark.parametrize("name", ["dedication_codes", "is_dedication_open", "unheard_of"])
def test_a_column_that_no_version_has_is_refused(name: str) -> None:
    moment = recording.copy_of(furnished())
    columns = {**moment.columns, f"hosts/fact/{name}": moment.columns["hosts/fact/is_open"]}
    with pytest.raises(ValueError, match=f"there is no column fact {name}"):
        recording.table_of(columns, recording.plain(moment.state))


def test_a_copy_stays_as_it_was() -> None:
    table = furnished()
    moment = recording.copy_of(table)
    before = {path: column.tobytes() for path, column in moment.columns.items()}
    table.take(table.index_by_name["a"], {"VCPU": 1})
    table.add_server(table.index_by_name["b"], "red", 1)
    table.remove_row(ProviderId(3))
    assert {path: column.tobytes() for path, column in moment.columns.items()} == before
    plain = recording.plain(moment.state)
    assert plain["names"] == ["a", "b", "c"]
    assert plain["residents"] == [[2, {"red": 2}]]


def test_a_table_without_hosts_is_one() -> None:
    found = again(HostTable())
    assert found.host_count == 0
    compare(found, HostTable(), "table")


def broken(**changes: Any) -> Moment:
    moment = recording.copy_of(furnished())
    state = json.loads(json.dumps(recording.plain(moment.state)))
    return Moment(dict(moment.columns), {**state, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ["a", "b"]},
        {"names": ["a", "a", "b"]},
        {"names": [1, 2, 3]},
        {"agents": ["agent"]},
        {"agents": ["agent", "agent"]},
        {"zones": ["nova"]},
        {"aggregates": []},
        {"memberships": [[]]},
        {"capabilities": {"values": [], "codes": [0, 0, 0]}},
        {"pools": {"class_ids": {}, "uuids": [], "aggregates": []}},
    ],
    ids=str,
)
def test_what_never_was_a_table_is_refused(changes: dict[str, Any]) -> None:
    moment = broken(**changes)
    with pytest.raises((ValueError, IndexError)):
        recording.table_of(moment.columns, moment.state)


@pytest.mark.parametrize(
    "path", ["hosts/fact/is_open", "hosts/fact/zone_codes", "pools/fact/generations"]
)
def test_a_fact_that_is_missing_is_missed(path: str) -> None:
    moment = broken()
    columns = {each: column for each, column in moment.columns.items() if each != path}
    with pytest.raises(ValueError, match=r"there is no column"):
        recording.table_of(columns, moment.state)


@pytest.mark.parametrize("kind", ["free", "used", "min_unit", "max_unit", "step_size"])
@pytest.mark.parametrize("thing", ["hosts/{}/VCPU", "pools/{}/DISK_GB"])
def test_a_class_of_which_a_part_is_missing_is_refused(kind: str, thing: str) -> None:
    moment = broken()
    path = thing.format(kind)
    columns = {each: column for each, column in moment.columns.items() if each != path}
    assert len(columns) == len(moment.columns) - 1
    with pytest.raises(ValueError, match=f"there is no column {path}"):
        recording.table_of(columns, moment.state)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hosts/free/VCPU", np.nan),
        ("hosts/used/VCPU", np.inf),
        ("hosts/max_unit/VCPU", -np.inf),
        ("hosts/fact/facts_seen_s", np.nan),
        ("pools/free/DISK_GB", np.nan),
        ("agents/heard_s", np.nan),
    ],
)
def test_what_is_no_number_is_refused(path: str, value: float) -> None:
    moment = broken()
    column = moment.columns[path].copy()
    column[0] = value
    with pytest.raises(ValueError, match=f"the column {path} has values that are not numbers"):
        recording.table_of({**moment.columns, path: column}, moment.state)


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("hosts/fact/is_open", np.zeros(2, dtype=np.bool_)),
        ("hosts/free/VCPU", np.zeros(3, dtype=np.int64)),
        ("hosts/fact/height", np.zeros(3)),
        ("hosts/spare/VCPU", np.zeros(3)),
        ("pools/free/DISK_GB", np.zeros((1, 1))),
    ],
)
def test_a_column_that_does_not_fit_is_refused(path: str, column: Any) -> None:
    moment = broken()
    with pytest.raises(ValueError, match=r"column"):
        recording.table_of({**moment.columns, path: column}, moment.state)


def test_a_column_needs_one_value_for_each_row() -> None:
    table = AmountTable()
    table.add_rows([ProviderId(1)])
    table.set_column("free", "VCPU", np.array([4.0]))
    assert table.free["VCPU"].tolist() == [4.0]
    with pytest.raises(ValueError, match=r"has a wrong length or type"):
        table.set_column("free", "VCPU", np.array([4.0, 5.0]))
