"""Each filter alone: which hosts pass, for which requests, and its text about what is missing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.ids import AgentId
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.filters import (
    availability_zone,
    capacity,
    compute,
    compute_capabilities,
    forced_host,
)
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.snapshot.columns import HostTable
from tests.support.host_facts import passed_by
from tests.support.tables import (
    NOW_S,
    SILENCE_MAX_S,
    Sketch,
    asking,
    asking_for,
    demand,
    host,
    table_of,
)

WHOLE = slice(None)

ALIVE_CASES = [
    pytest.param(host("a"), {"a"}, id="an enabled host with a recent heartbeat passes"),
    pytest.param(host("a", is_open=False), set(), id="a disabled host is removed"),
    pytest.param(
        host("a", heard_s=NOW_S - SILENCE_MAX_S),
        {"a"},
        id="a host passes up to the limit of silence",
    ),
    pytest.param(
        host("a", heard_s=NOW_S - SILENCE_MAX_S - 0.01), set(), id="a silent host is removed"
    ),
    pytest.param(host("a", heard_s=NOW_S + 3600), {"a"}, id="a heartbeat in the future passes"),
    pytest.param(host("a", heard_s=0.0), set(), id="an agent without a heartbeat counts as silent"),
]


@pytest.mark.parametrize(("sketch", "left"), ALIVE_CASES)
def test_compute_filter_wants_open_hosts_with_an_agent(sketch: Sketch, left: set[str]) -> None:
    assert passed_by(compute, table_of(sketch), asking()) == left


def test_one_silent_agent_takes_only_its_own_hosts_away() -> None:
    silent = NOW_S - 1000
    table = table_of(
        host("a", agent="one"),
        host("b", agent="two", heard_s=silent),
        host("c", agent="one"),
        host("d", agent="two", heard_s=silent),
        host("e", agent="one", is_open=False),
    )
    assert passed_by(compute, table, asking()) == {"a", "c"}
    said = compute.missing(table, asking())
    assert said == "1 disabled or forced down, 2 down (no heartbeat for 60 s)"


def test_an_agent_without_hosts_may_be_silent() -> None:
    table = table_of(host("a"))
    table.agent_code(AgentId("gone"))
    assert passed_by(compute, table, asking()) == {"a"}


ZONE_CASES = [
    pytest.param(None, {"a", "b", "c"}, id="no zone asked for leaves all"),
    pytest.param("north", {"a", "c"}, id="only the hosts of the zone asked for"),
    pytest.param("south", {"b"}, id="the other zone"),
    pytest.param("west", set(), id="an unknown zone leaves none"),
    pytest.param("", set(), id="the empty name is no zone"),
    pytest.param("North", set(), id="zones are spelt exactly"),
]


@pytest.mark.parametrize(("zone", "left"), ZONE_CASES)
def test_availability_zone_filter(zone: str | None, left: set[str]) -> None:
    table = table_of(host("a", zone="north"), host("b", zone="south"), host("c", zone="north"))
    assert passed_by(availability_zone, table, asking(availability_zone=zone)) == left


def test_availability_zone_filter_names_the_zones_there_are() -> None:
    table = table_of(host("a", zone="north"), host("b", zone="south"))
    said = availability_zone.missing(table, asking(availability_zone="west"))
    assert said == "zone 'west' requested; zones with hosts: north, south"
    nowhere = availability_zone.missing(HostTable(), asking(availability_zone="west"))
    assert nowhere == "zone 'west' requested; zones with hosts: none"


FORCED_CASES = [
    pytest.param(None, {"a", "b"}, id="nothing forced leaves all"),
    pytest.param("b", {"b"}, id="only the named host"),
    pytest.param("B", set(), id="names are spelt exactly"),
    pytest.param("nobody", set(), id="a stranger leaves none"),
]


@pytest.mark.parametrize(("name", "left"), FORCED_CASES)
def test_forced_host_filter(name: str | None, left: set[str]) -> None:
    assert passed_by(forced_host, table_of(host("a"), host("b")), asking(forced_host=name)) == left


def test_forced_host_filter_does_not_say_which_host_was_named() -> None:
    told = forced_host.missing(table_of(), asking(forced_host="x"))
    assert told == "another host was requested"


CAPACITY_CASES = [
    pytest.param(host("a", vcpus=4), asking(4), {"a"}, id="exactly the free amount fits"),
    pytest.param(
        host("a", vcpus=4), asking(5), set(), id="one more than the free amount does not fit"
    ),
    pytest.param(
        host("a", memory_mb=1023), asking(1, 1024), set(), id="every class must have enough"
    ),
    pytest.param(
        host("a", vcpus=-3), asking_for(VCPU=1), set(), id="an overcommitted host has nothing"
    ),
    pytest.param(
        host("a"),
        asking_for(CUSTOM_GOLD=1),
        set(),
        id="no host passes for a class that no host has",
    ),
    pytest.param(
        host("a", vcpus=0), asking(0, 1, 1), {"a"}, id="a class that is not requested may be 0"
    ),
    pytest.param(
        host("a", units={"VCPU": (4, 8, 1)}), asking(2), set(), id="less than min_unit is refused"
    ),
    pytest.param(
        host("a", units={"VCPU": (1, 8, 1)}), asking(9), set(), id="more than max_unit is refused"
    ),
    pytest.param(
        host("a", units={"VCPU": (5, 16, 10)}),
        asking(5),
        {"a"},
        id="min_unit fits even if the step does not divide it",
    ),
    pytest.param(
        host("a", units={"VCPU": (5, 16, 10)}),
        asking(6),
        set(),
        id="an amount between steps is refused",
    ),
    pytest.param(
        host("a", units={"VCPU": (5, 16, 10)}), asking(10), {"a"}, id="a multiple of the step fits"
    ),
    pytest.param(
        host("a", memory_mb=2**40),
        asking(1, 2**40),
        set(),
        id="without rules, the default max_unit is the limit",
    ),
]


@pytest.mark.parametrize(("sketch", "spec", "left"), CAPACITY_CASES)
def test_capacity_filter(sketch: Sketch, spec: RequestSpec, left: set[str]) -> None:
    assert passed_by(capacity, table_of(sketch), spec) == left


def test_capacity_filter_keeps_hosts_and_their_rules_apart() -> None:
    table = table_of(
        host("roomy"),
        host("full", vcpus=1),
        host("coarse", units={"VCPU": (1, 16, 4)}),
        host("small pieces", units={"VCPU": (1, 1, 1)}),
        Sketch("no vcpus at all", {"MEMORY_MB": 4096, "DISK_GB": 100}),
    )
    assert passed_by(capacity, table, asking(2)) == {"roomy"}
    assert passed_by(capacity, table, asking(4)) == {"roomy", "coarse"}


def test_capacity_filter_does_not_apply_without_amounts() -> None:
    assert capacity.mask(table_of(host("a")), asking(0, 0, 0), WHOLE) is None


def test_capacity_filter_missing_has_the_most_on_one_host() -> None:
    table = table_of(host("a", vcpus=2), host("b", vcpus=7, memory_mb=-5))
    said = capacity.missing(table, asking_for(VCPU=8, MEMORY_MB=40_000, CUSTOM_GOLD=1))
    assert said == (
        "VCPU: 8 requested, at most 7 left on one host; "
        "MEMORY_MB: 40000 requested, at most 32768 left on one host; "
        "CUSTOM_GOLD: 1 requested, at most 0 left on one host"
    )


def test_capacity_filter_reports_no_negative_amounts() -> None:
    said = capacity.missing(table_of(host("a", vcpus=-3)), asking_for(VCPU=1))
    assert said == "VCPU: 1 requested, at most 0 left on one host"


def test_capacity_filter_missing_reports_unit_rules() -> None:
    table = table_of(
        host("a", units={"VCPU": (1, 4, 1)}),
        host("b", units={"VCPU": (1, 4, 1)}),
        host("used up", vcpus=0, units={"VCPU": (1, 4, 1)}),
    )
    said = capacity.missing(table, asking_for(VCPU=8))
    assert said == (
        "VCPU: 8 requested, at most 16 left on one host, "
        "some hosts do not allow this amount in one allocation"
    )


TRAITED = (
    host("plain", capabilities={"arch": "x86_64"}),
    host("fast", traits=("HW_AVX",), capabilities={"arch": "x86_64", "cores": 8}),
    host("odd", traits=("HW_AVX", "CUSTOM_ODD"), capabilities={"arch": "arm", "cores": 64}),
)
CAPABILITY_CASES = [
    pytest.param({}, {"plain", "fast", "odd"}, id="no demand leaves all"),
    pytest.param(
        {"required_traits": frozenset({"HW_AVX"})}, {"fast", "odd"}, id="a required trait"
    ),
    pytest.param(
        {"required_traits": frozenset({"HW_AVX", "CUSTOM_ODD"})}, {"odd"}, id="all required traits"
    ),
    pytest.param(
        {"required_traits": frozenset({"CUSTOM_NONE"})}, set(), id="a trait that no host has"
    ),
    pytest.param(
        {"forbidden_traits": frozenset({"CUSTOM_ODD"})}, {"plain", "fast"}, id="a forbidden trait"
    ),
    pytest.param(
        {"forbidden_traits": frozenset({"CUSTOM_NONE"})},
        {"plain", "fast", "odd"},
        id="a forbidden trait that no host has removes none",
    ),
    pytest.param(
        {"required_traits": frozenset({"HW_AVX"}), "forbidden_traits": frozenset({"CUSTOM_ODD"})},
        {"fast"},
        id="required and forbidden together",
    ),
    pytest.param(
        {"comparisons": (demand("arch", "x86_64"), demand("cores", ">= 4"))},
        {"fast"},
        id="all comparisons must hold",
    ),
    pytest.param(
        {"comparisons": (demand("gpu", "!= 1"),)},
        set(),
        id="an unreported capability does not match",
    ),
]


@pytest.mark.parametrize(("wanted", "left"), CAPABILITY_CASES)
def test_compute_capabilities_filter(wanted: dict[str, Any], left: set[str]) -> None:
    assert passed_by(compute_capabilities, table_of(*TRAITED), asking(**wanted)) == left


def test_compute_capabilities_filter_counts_each_demand_alone() -> None:
    said = compute_capabilities.missing(
        table_of(*TRAITED),
        asking(
            required_traits=frozenset({"HW_AVX", "CUSTOM_NONE"}),
            forbidden_traits=frozenset({"CUSTOM_ODD"}),
            comparisons=(demand("cores", ">= 9"), demand("arch", "<or> arm <or> x86_64")),
        ),
    )
    assert said == (
        "trait CUSTOM_NONE: on 0 hosts; trait HW_AVX: on 2 hosts; "
        "forbidden trait CUSTOM_ODD: on 1 hosts; "
        "capability cores >= 9: on 1 hosts; "
        "capability arch <or> arm x86_64: on 3 hosts"
    )


def test_the_catalogue_knows_every_filter_by_its_name() -> None:
    assert [each.NAME for each in FILTERS.values()] == list(FILTERS)
    folder = Path(capacity.__file__).parent
    others = {"__init__", "catalogue"}
    modules = {path.stem for path in folder.glob("*.py")} - others
    homes = [inspect.getmodule(each) for each in FILTERS.values()]
    assert {each.__name__.rpartition(".")[2] for each in homes if each is not None} == modules


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_is_content_with_a_table_without_hosts(name: str) -> None:
    chooser = FILTERS[name]
    spec = asking(availability_zone="x", forced_host="y", required_traits=frozenset({"T"}))
    mask = chooser.mask(HostTable(), spec, WHOLE)
    assert mask is None or mask.shape == (0,)
    assert chooser.missing(HostTable(), spec)
    assert name == chooser.NAME
    assert chooser.REASON
