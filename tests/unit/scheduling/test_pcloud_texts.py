"""Texts about dedicated hosts: words for users, and numbers for administrators."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import Network, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import depletion, explaining, explanation_values, pipeline, reasons
from innkeeper.scheduling.facts import masks
from innkeeper.scheduling.filters import catalogue, dedication
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot import drivers
from tests.support.tables import asking, fill, host, row_for, table_of

OURS, THEIRS = "ours", "theirs"


def cloud() -> HostTable:
    """Three ordinary hosts, one host of a pool, and two pclouds; one has only disabled hosts."""
    table = table_of(
        *(host(f"shared-{number}", vcpus=1) for number in range(3)),
        host("pooled", pcloud=""),
        host("open", pcloud=OURS, pcloud_name="a", is_pcloud_open=True),
        host("shut", pcloud=OURS, pcloud_name="b"),
        host("closed", pcloud=THEIRS, pcloud_name="a"),
    )
    for uuid in (OURS, THEIRS):
        table.dedications.set_facts(uuid, ["project"], [])
    return table


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "the request names no pcloud, and these hosts are dedicated"),
        ({"pclouds": ("none",)}, "no pcloud with the requested id has hosts for this project"),
        (
            {"pclouds": (OURS,), "project_id": "stranger"},
            "no pcloud with the requested id has hosts for this project",
        ),
        (
            {"pclouds": (OURS,)},
            "only hosts of the requested pcloud that take new servers can be used",
        ),
        ({"pclouds": (THEIRS,)}, "no host of the requested pcloud takes new servers"),
        ({"pclouds": (OURS,), "pcloud_host": "c"}, "the named host is not in the requested pcloud"),
        ({"pclouds": (OURS,), "pcloud_host": "b"}, "the named host does not take new servers"),
        ({"pclouds": (OURS,), "pcloud_host": "a"}, "only the named host can be used"),
        ({"pclouds": (OURS, THEIRS), "pcloud_host": "a"}, "only the named host can be used"),
    ],
)
def test_the_missing_text(wanted: dict[str, Any], words: str) -> None:
    assert dedication.PCLOUD_FILTER.missing(cloud(), asking(**wanted)) == words


def told(
    spec: RequestSpec, table: HostTable | None = None
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The fault, and the explanation for everybody and for administrators."""
    table, wanted = table or cloud(), Scheduling()
    scheduler = drivers.scheduler_of(wanted)
    made = scheduler.plan(table, spec)
    depletion.undo(table, spec, made)
    by = explaining.deciders(scheduler, wanted.host_subset_size, spec.seed)
    found = explaining.explain(scheduler.pipeline, table, spec, made, by)
    nearest = (found.then or found).nearest
    fault = reasons.sentence(made, spec.count, nearest, has_dedicated=found.has_dedicated)
    counted = reasons.counted(made, spec.count, nearest)
    found = replace(found, fault=fault, counted_fault=counted)
    for_all, for_some = (
        explanation_values.explanation(found, are_hosts_named=is_named)
        for is_named in (False, True)
    )
    return fault, for_all, for_some


@pytest.mark.parametrize("pclouds", [(), (OURS,), (THEIRS,), ("none",)])
def test_no_number_of_hosts_gives_away_how_many_are_dedicated(pclouds: tuple[str, ...]) -> None:
    fault, for_all, for_some = told(asking(vcpus=20, pclouds=pclouds))
    assert fault.startswith("No valid host was found. None of the hosts passed all filters")
    assert not any(f"removed {number}" in fault for number in range(8))
    assert (for_all["hosts"], for_all["candidates"]) == (None, None)
    for each in for_all["removed"]:
        assert (each["removed"], each["refused"], each["alone"]) == (None, None, None)
        assert each["reason"]
    assert (for_some["hosts"], for_some["candidates"]) == (7, 0)
    assert sum(each["removed"] for each in for_some["removed"]) == 7
    # Nor can users count the nearest misses, of which administrators see five.
    assert len(for_some["nearest"]) == 5
    for_hosts = [each["refused_by"][0]["filter"] for each in for_all["nearest"]]
    assert for_hosts.count("PcloudFilter") == 1


@pytest.mark.parametrize("wanted", [{"availability_zone": "elsewhere"}, {"vcpus": 10_000}])
def test_whichever_filter_removes_them_dedicated_hosts_are_not_counted(
    wanted: dict[str, Any],
) -> None:
    """If other filters remove all dedicated hosts, the pcloud filter has none left to remove."""
    fault, for_all, for_some = told(asking(**wanted))
    assert "None of the hosts passed all filters" in fault
    assert "removed some" in fault
    assert (for_all["hosts"], for_some["hosts"]) == (None, 7)
    assert {each["removed"] for each in for_all["removed"]} == {None}


def test_a_fault_reads_well_without_numbers() -> None:
    fault, _, _ = told(asking(vcpus=2))
    assert fault.startswith(
        "No valid host was found. None of the hosts passed all filters: "
        "PcloudFilter removed some (the host is dedicated, or not in the requested "
        "pcloud; the request names no pcloud, and these hosts are dedicated), "
        "CapacityFilter removed some (the host has too little free capacity; "
    )
    fault, _, _ = told(asking(count=9, pclouds=(OURS,), vcpus=4))
    assert fault.startswith(
        "No valid host was found. Some of the hosts passed all filters, with room for 4 of 9 "
        "servers: "
    )


def test_a_partial_failure_has_no_numbers_either() -> None:
    _, for_all, for_some = told(asking(count=9, pclouds=(OURS,), vcpus=4))
    assert for_all["room"] == for_some["room"] == 4
    assert {each["removed"] for each in for_all["then"]["removed"]} == {None}
    assert None not in {each["removed"] for each in for_some["then"]["removed"]}
    assert len(for_some["then"]["nearest"]) == 5
    assert len(for_all["then"]["nearest"]) == 2, "the one that is full, and one for all others"


@pytest.mark.parametrize("pclouds", [(), (OURS,), (THEIRS,), ("none",)])
def test_administrators_read_numbers(pclouds: tuple[str, ...]) -> None:
    _, _, for_some = told(asking(vcpus=20, pclouds=pclouds))
    assert for_some["fault"].startswith("No valid host was found. Of 7 hosts, 0 passed all")
    assert "some" not in for_some["fault"].partition(" The nearest host")[0]
    _, _, for_some = told(asking(count=9, pclouds=(OURS,), vcpus=4))
    assert "Of 7 hosts, 1 passed all filters, with room for 4 of 9 " in for_some["fault"]


def test_administrators_read_numbers_of_what_is_missing() -> None:
    table = cloud()
    table.is_open[1:5] = False
    fault, for_all, for_some = told(asking(required_traits=frozenset({"CUSTOM_X"})), table)
    assert "; some disabled or forced down, 0 down (no heartbeat for 60 s))" in fault
    assert "; 4 disabled or forced down, 0 down (no heartbeat for 60 s))" in for_some["fault"]
    by_name = {each["filter"]: each["missing"] for each in for_some["removed"]}
    assert by_name["ComputeFilter"] == "4 disabled or forced down, 0 down (no heartbeat for 60 s)"
    assert by_name["ComputeCapabilitiesFilter"] == "trait CUSTOM_X: on 0 hosts"
    assert "4 disabled" not in json.dumps(for_all)


NEAR = Network(4, 10 << 24, 8)
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "ComputeFilter": ({}, "{some} disabled or forced down"),
    "CapacityFilter": ({"vcpus": 9}, "{some} hosts do not allow this amount in one allocation"),
    "ComputeCapabilitiesFilter": (
        {"required_traits": frozenset({"CUSTOM_X"})},
        "trait CUSTOM_X: on {some} hosts",
    ),
    "InstanceTypeFilter": (
        {"flavor_specs": (("capabilities:rack", "west"),)},
        "capability rack equal to 'west': on {some} hosts",
    ),
    "SimpleCIDRAffinityFilter": ({"near": NEAR}, "{some} hosts have an IPv4 address"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_missing_is_in_numbers_for_administrators_alone(name: str) -> None:
    facts: dict[str, Any] = {
        "is_open": False,
        "traits": ("CUSTOM_X",),
        "capabilities": {"rack": "west"},
        "units": {"VCPU": (1, 4, 1)},
    }
    table = table_of(host("a", **facts), host("b", **facts), host("c", pcloud=""))
    table.ip_versions[:2] = NEAR.version
    wanted, words = CASES[name]
    spec, by = asking(**wanted), catalogue.FILTERS[name]
    assert words.format(some="some") in by.missing(table, spec)
    assert words.format(some="2") in pipeline.missing(by, table, spec)[1]


def test_all_filters_that_count_in_words_do_it_in_numbers_too() -> None:
    assert set(CASES) == {
        name for name, by in catalogue.FILTERS.items() if hasattr(by, "missing_counted")
    }


def test_where_nothing_is_dedicated_all_is_counted() -> None:
    table, spec = table_of(host("a"), host("b", vcpus=0)), asking(vcpus=99)
    scheduler = drivers.scheduler_of(Scheduling())
    made = scheduler.plan(table, spec)
    by = explaining.deciders(scheduler, 1, spec.seed)
    found = explaining.explain(scheduler.pipeline, table, spec, made, by)
    shown = explanation_values.explanation(found, are_hosts_named=False)
    assert (shown["hosts"], shown["candidates"]) == (2, 0)
    assert [each["removed"] for each in shown["removed"]] == [2]


def test_a_new_host_clears_cached_rows_only_if_it_is_dedicated() -> None:
    table = table_of(host("a"))
    assert not masks.has_dedicated(table)
    fill(table, row_for(table, 2, "b"), host("b"))
    assert not masks.has_dedicated(table)
    fill(table, row_for(table, 3, "c"), host("c", pcloud=""))
    assert masks.has_dedicated(table)
    table.remove_row(ProviderId(3))
    assert not masks.has_dedicated(table)
    fill(table, row_for(table, 2, "b"), host("b", pcloud=OURS))
    assert masks.has_dedicated(table)
    fill(table, row_for(table, 2, "b"), host("b"))
    assert not masks.has_dedicated(table)
