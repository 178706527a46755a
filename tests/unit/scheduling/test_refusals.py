"""What rejected hosts lack, and which of them are the nearest misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from innkeeper.domain.placing import RequestSpec, Rules
from innkeeper.scheduling import refusals
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import (
    ANY_AMOUNT,
    NOW_S,
    Pool,
    Sketch,
    add_pools,
    asking,
    asking_for,
    demand,
    host,
    table_of,
)

USUAL = [
    FILTERS[name]
    for name in (
        "ForcedHostFilter",
        "ComputeFilter",
        "AvailabilityZoneFilter",
        "CapacityFilter",
        "ComputeCapabilitiesFilter",
    )
]


def nearest(table: HostTable, spec: RequestSpec, most: int = 5) -> list[str]:
    found = refusals.look(USUAL, table, spec)
    return [each.host for each in refusals.nearest(found, table, spec, most)]


LACKS = [
    pytest.param(
        "CapacityFilter",
        host("a", memory_mb=1536, vcpus=0),
        asking(vcpus=2, memory_mb=2048),
        ["VCPU: 2 of 2 missing", "MEMORY_MB: 512 of 2048 missing"],
        id="amounts beside what is asked for",
    ),
    pytest.param(
        "CapacityFilter",
        host("a", vcpus=-3),
        asking(vcpus=2),
        ["VCPU: 2 of 2 missing"],
        id="less than nothing is nothing",
    ),
    pytest.param(
        "CapacityFilter",
        host("a", units={"VCPU": (1, 4, 1)}),
        asking(vcpus=5),
        ["VCPU: 5 are not allowed in one allocation"],
        id="enough, but not in one piece",
    ),
    pytest.param(
        "CapacityFilter",
        host("a"),
        asking(amounts={"CUSTOM_GOLD": 3}),
        ["CUSTOM_GOLD: 3 of 3 missing"],
        id="a class that nobody has",
    ),
    pytest.param(
        "ComputeFilter",
        host("a", is_open=False, heard_s=NOW_S - 93),
        asking(),
        ["it is disabled or forced down", "its agent is down: no heartbeat for 93 s"],
        id="closed, and silent too",
    ),
    pytest.param(
        "ComputeFilter",
        host("a", heard_s=-np.inf),
        asking(),
        ["its agent is down: no heartbeat yet"],
        id="never heard",
    ),
    pytest.param(
        "AvailabilityZoneFilter",
        host("a", zone="north"),
        asking(availability_zone="south"),
        ["it is in zone 'north'"],
        id="another zone",
    ),
    pytest.param(
        "ComputeCapabilitiesFilter",
        host("a", traits=("BAD",), capabilities={"cores": 4}),
        asking(
            required_traits=frozenset({"T", "U"}),
            forbidden_traits=frozenset({"BAD", "WORSE"}),
            comparisons=(demand("cores", ">= 5"), demand("gpus", ">= 1")),
        ),
        [
            "trait T missing",
            "trait U missing",
            "trait BAD forbidden",
            "capability cores >= 5: it is 4",
            "capability gpus >= 1: not reported",
        ],
        id="traits and capabilities",
    ),
    pytest.param(
        "ComputeCapabilitiesFilter",
        host("a", capabilities={"cores": 8}, heard_s=NOW_S - 100),
        asking(comparisons=(demand("cores", ">= 5"),), rules=Rules(capabilities_max_age_s=50.0)),
        ["capability cores >= 5: not reported recently"],
        id="capabilities that are too old",
    ),
]


@pytest.mark.parametrize(("name", "sketch", "spec", "lacks"), LACKS)
def test_lacks_of_one_host(name: str, sketch: Sketch, spec: RequestSpec, lacks: list[str]) -> None:
    # Other hosts have these classes and traits, so the columns exist.
    more = host("b", vcpus=64, traits=("T", "U", "WORSE"), agent="another")
    table = table_of(sketch, more)
    (found,) = refusals.verdicts([FILTERS[name]], table, spec, table.index_by_name["a"])
    assert found.objection is not None
    assert list(found.objection.lacks) == lacks
    assert found.objection.reason == FILTERS[name].REASON


@pytest.mark.parametrize(
    ("name", "column", "lack"),
    [
        ("IoOpsFilter", "busy_counts", "9 busy servers; fewer than 8 required"),
        ("NumInstancesFilter", "server_counts", "9 servers; fewer than 8 required"),
    ],
)
def test_servers_are_counted(name: str, column: str, lack: str) -> None:
    table = table_of(host("a"))
    getattr(table, column)[0] = 9
    rules = Rules(servers_per_host_max=8, busy_servers_per_host_max=8)
    (found,) = refusals.verdicts(
        [FILTERS[name]], table, asking(rules=rules), table.index_by_name["a"]
    )
    assert found.objection is not None
    assert found.objection.lacks == (lack,)


def test_what_a_pool_lends_is_not_missing() -> None:
    aggregates = frozenset("a")
    bare = Sketch("bare", {"VCPU": 1}, units={"VCPU": ANY_AMOUNT}, aggregates=aggregates)
    table = add_pools(table_of(bare), Pool({"DISK_GB": 30}, aggregates))
    told = FILTERS["CapacityFilter"]
    row = table.index_by_name["bare"]
    (found,) = refusals.verdicts([told], table, asking_for(VCPU=2, DISK_GB=20), row)
    assert found.objection is not None
    assert found.objection.lacks == ("VCPU: 1 of 2 missing",)
    (found,) = refusals.verdicts([told], table, asking_for(VCPU=1, DISK_GB=40), row)
    assert found.objection is not None
    assert found.objection.lacks == ("DISK_GB: 10 of 40 missing",)
    (found,) = refusals.verdicts([told], table, asking_for(DISK_GB=20), row)
    assert found.objection is not None
    assert found.objection.lacks == (
        "all amounts would come from pools; at least one must come from the host",
    )


def test_fewer_refusals_are_nearer_and_then_less_shortage() -> None:
    table = table_of(
        host("both", is_open=False, memory_mb=2047),
        host("half", memory_mb=1024),
        host("closed", is_open=False),
        host("most", memory_mb=1536),
        host("fits"),
    )
    assert nearest(table, asking(memory_mb=2048)) == ["closed", "most", "half", "both"]
    assert nearest(table, asking(memory_mb=2048), most=2) == ["closed", "most"]
    assert nearest(table, asking(memory_mb=2048), most=0) == []


def test_the_host_that_was_named_is_nearer_than_those_that_were_not() -> None:
    table = table_of(host("other"), host("named", is_open=False, vcpus=0))
    assert nearest(table, asking(forced_host="named")) == ["named", "other"]


def test_among_equals_the_seed_decides() -> None:
    table = table_of(*(host(f"h{number}", vcpus=0) for number in range(6)))
    spec = asking(vcpus=1)
    found = {nearest(table, replace(spec, seed=seed), most=1)[0] for seed in range(200)}
    assert found == set(table.names)
    assert nearest(table, spec) == nearest(table, spec)


def test_of_no_hosts_none_is_near() -> None:
    empty: Any = HostTable()
    assert nearest(empty, asking()) == []
    assert refusals.tallies(refusals.look(USUAL, empty, asking()), empty, asking()) == ()


def test_a_filter_without_lacks_gives_its_reason() -> None:
    table = table_of(host("a"), host("b"))
    (found,) = refusals.verdicts(
        [FILTERS["ForcedHostFilter"]], table, asking(forced_host="b"), table.index_by_name["a"]
    )
    assert found.objection is not None
    assert (found.objection.reason, found.objection.lacks) == ("the request names another host", ())


def test_filters_that_do_not_apply_have_a_verdict() -> None:
    table = table_of(host("a"))
    told = refusals.verdicts(USUAL, table, asking(), table.index_by_name["a"])
    assert {each.filter_name: each.is_requested for each in told} == {
        "ForcedHostFilter": False,
        "ComputeFilter": True,
        "AvailabilityZoneFilter": False,
        "CapacityFilter": True,
        "ComputeCapabilitiesFilter": False,
    }
