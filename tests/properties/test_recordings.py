"""A replayed recording makes the same decision, and any damaged recording is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import GroupPolicy, GroupRule, Network, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import depletion, recordings
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot import drivers
from tests.properties.test_plans import SKETCHES, SPECS
from tests.support.tables import Pool, Sketch, add_pools, asking, host, picture, table_of

AGGREGATES = st.lists(st.frozensets(st.integers(1, 4), max_size=3), min_size=9, max_size=9)
TENANTS = st.lists(
    st.dictionaries(st.sampled_from(["red", "blue"]), st.integers(1, 5)), min_size=9, max_size=9
)
METADATA: dict[int, dict[str, str]] = {
    1: {"ram_weight_multiplier": "2.5"},
    2: {"ssd": "true"},
    3: {"cpu_weight_multiplier": "-1", "availability_zone": "south"},
    4: {},
}
POOLS = st.sampled_from(
    [(), (Pool({"DISK_GB": 40}, frozenset("a")), Pool({"DISK_GB": 60}, frozenset("ab")))]
)
SETTINGS = st.builds(
    Scheduling,
    scheduler_driver=st.sampled_from(sorted(SCHEDULERS)),
    default_host_weighers=st.sampled_from(
        [("FreeMemoryWeigher", "FreeDiskWeigher"), ("FreeVcpusWeigher",)]
    ),
    host_subset_size=st.sampled_from([1, 1, 3]),
)


def furnished(
    sketches: list[Sketch],
    pools: tuple[Pool, ...],
    aggregates: list[frozenset[int]],
    tenants: list[dict[str, int]],
) -> HostTable:
    """A table with some data of every kind."""
    table = table_of(*sketches)
    if pools:
        add_pools(table, *pools)
        for index in range(0, table.host_count, 2):
            table.membership_codes[index] = table.pools.code(frozenset("a"))
            for columns in (table.free, table.used):
                columns["DISK_GB"][index] = 0
    for number, metadata in METADATA.items():
        table.aggregates.set_metadata(number, metadata)
    table.knows_servers = True
    for index in range(table.host_count):
        table.aggregate_codes[index] = table.aggregates.code(aggregates[index])
        table.residents.replace(ProviderId(index + 1), tenants[index])
        table.server_counts[index] = sum(tenants[index].values())
    return table


def recorded(table: HostTable, spec: RequestSpec, wanted: Scheduling) -> bytes:
    moment = recording.copy_of(table)
    made = drivers.scheduler_of(wanted).plan(table, spec)
    depletion.undo(table, spec, made)
    recipe = Recipe(
        wanted.scheduler_driver,
        wanted.default_host_filters,
        tuple((name, 1.0) for name in wanted.default_host_weighers),
        wanted.host_subset_size,
        wanted.build_attempts_max,
    )
    return recordings.write(
        Recording(moment, spec, recipe, made, "2026-11-20T20:00:00Z", "r-12345678")
    )


@settings(max_examples=300)
@given(SKETCHES, SPECS, POOLS, AGGREGATES, TENANTS, SETTINGS)
def test_a_decision_comes_out_again_from_its_file(
    sketches: list[Sketch],
    spec: RequestSpec,
    pools: Any,
    aggregates: Any,
    tenants: Any,
    wanted: Scheduling,
) -> None:
    table = furnished(sketches, pools, aggregates, tenants)
    packed = recorded(table, spec, wanted)
    found = recordings.read(packed)
    assert found.spec == spec
    assert picture(found.table) == picture(table)
    assert drivers.scheduler_of(wanted).plan(found.table, found.spec) == found.plan
    depletion.undo(found.table, found.spec, found.plan)
    again = Recording(
        recording.copy_of(found.table),
        found.spec,
        found.recipe,
        found.plan,
        found.recorded_at,
        found.label,
    )
    assert recordings.read(recordings.write(again)).plan == found.plan


def test_all_that_a_request_can_say_comes_back() -> None:
    spec = asking(
        group=GroupRule(GroupPolicy.SOFT_AFFINITY, {"a": 2}, 3),
        near=Network(6, 2**127 + 1, 64),
        query=("and", ("=", "$free_ram_mb", 1), ("in", "x", "a", 2.5)),
        same_hosts=frozenset({"a"}),
        hints={"anything": ["goes", {"here": 1}]},
        flavor_specs=(("trait:A", "required"),),
    )
    found = recordings.read(recorded(table_of(host("a")), spec, Scheduling()))
    assert found.spec == spec
    assert hash(found.spec.query) == hash(spec.query)


GOOD = recorded(
    add_pools(table_of(host("a"), host("b")), Pool({"DISK_GB": 5}, frozenset("x"))),
    asking(count=2),
    Scheduling(),
)


SHARES = st.floats(0, 1, exclude_max=True)


def opened_or_refused(packed: bytes) -> None:
    try:
        recordings.read(packed)
    except Invalid as refusal:
        assert refusal.message.endswith(".")


@settings(max_examples=500)
@given(st.lists(st.tuples(SHARES, st.integers(0, 255)), max_size=4), st.none() | SHARES)
def test_whatever_is_done_to_a_file_it_is_read_or_refused(
    hits: list[tuple[float, int]], cut: float | None
) -> None:
    damaged = bytearray(GOOD)
    for place, byte in hits:
        damaged[int(place * len(damaged))] = byte
    opened_or_refused(bytes(damaged if cut is None else damaged[: int(cut * len(damaged))]))


def leaves(node: Any) -> list[tuple[Any, Any]]:
    """Every place of a JSON value that could hold something else."""
    found: list[tuple[Any, Any]] = []
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        found.append((node, key))
        if isinstance(node[key], dict | list):
            found += leaves(node[key])
    return found


def rewritten(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A valid file with another header."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(GOOD)) as before, zipfile.ZipFile(packed, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == recordings.HEAD:
                head = json.loads(content)
                change(head)
                content = json.dumps(head).encode()
            after.writestr(name, content)
    return packed.getvalue()


ODDITIES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "x", [], [[]], {}, {"a": 1}, ["a", "b"], [-1, 99], [1e300]]
)


@settings(max_examples=500)
@given(SHARES, ODDITIES)
def test_whatever_stands_in_the_head_it_is_read_or_refused(place: float, odd: Any) -> None:
    def change(head: dict[str, Any]) -> None:
        found = leaves(head)
        holder, key = found[int(place * len(found))]
        holder[key] = odd

    opened_or_refused(rewritten(change))


def refusal_of(packed: bytes) -> str:
    with pytest.raises(Invalid) as refused:
        recordings.read(packed)
    return refused.value.message


def test_what_is_no_recording_is_called_so() -> None:
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refusal_of(b"") == "This is not a recording of a decision: File is not a zip file."
    assert refusal_of(empty.getvalue()) == (
        "This is not a recording of a decision: it has no recording.json."
    )
    assert refusal_of(rewritten(lambda head: head.update(format="another"))) == (
        "This is not a recording of a decision."
    )


def test_the_error_for_a_newer_file_names_the_version() -> None:
    assert refusal_of(rewritten(lambda head: head.update(version=6))) == (
        "The recording has version 6, and this program reads only version 5. "
        "Replay it with the newer Innkeeper that wrote it."
    )


def test_the_error_for_an_older_file_names_the_version() -> None:
    assert refusal_of(rewritten(lambda head: head.update(version=3))) == (
        "The recording has version 3, and this program reads only version 5. "
        "Replay it with the older Innkeeper that wrote it."
    )


def test_what_is_missing_is_named() -> None:
    assert refusal_of(rewritten(lambda head: head.pop("plan"))) == (
        "The recording is damaged: plan is missing."
    )
