"""To the schedulers, simulated hosts look like real hosts."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.simulation.fleets import HostGroup, HostShape, lacking, table_of
from innkeeper.scheduling.simulation.workload import ServerShape
from tests.support.tables import pipeline_of, plan
from tests.support.workloads import SHAPES, hosts_of, workload_of

WORKLOAD = workload_of([(0, 1, 0, 0)])


def asking(**more: object) -> RequestSpec:
    settled: dict[str, object] = {"amounts": {"VCPU": 1}, "project_id": "p", "user_id": "u"}
    settled |= {"now_s": 0.0, "silence_max_s": 60.0, "seed": 1}
    return RequestSpec(**(settled | more))  # type: ignore[arg-type]


def test_all_facts_of_a_host_are_in_the_table() -> None:
    plain = HostShape("plain", {"VCPU": 4, "MEMORY_MB": 1024})
    rich = HostShape(
        "rich",
        {"VCPU": 8, "PGPU": 2},
        {"VCPU": 2.5},
        "south",
        ("HW_CPU_X86_AVX2",),
        {"gpu_model": "T4"},
    )
    table = table_of([HostGroup(plain, 2), HostGroup(rich, 1)], WORKLOAD)
    assert table.names == ["host-1", "host-2", "host-3"]
    assert table.free["VCPU"].tolist() == [4.0, 4.0, 20.0]
    assert table.max_units["VCPU"].tolist() == [4.0, 4.0, 8.0]
    assert table.free["PGPU"].tolist() == [0.0, 0.0, 2.0]
    assert table.free["MEMORY_MB"].tolist() == [1024.0, 1024.0, 0.0]
    assert table.zones_there() == ["nova", "south"]
    assert table.traits["HW_CPU_X86_AVX2"].tolist() == [False, False, True]
    assert table.capabilities_of(table.index_by_name["host-3"]) == {"gpu_model": "T4"}
    assert table.is_open.all()


def test_they_pass_the_filters() -> None:
    made = plan(pipeline_of(FreeVcpusWeigher=1.0), table_of(hosts_of(3), WORKLOAD), asking(count=4))
    assert len(made.entries) == 4
    assert made.removals == ()


def test_parts_of_a_unit_make_hosts_larger() -> None:
    workload = workload_of([(0, 1, 0, 0)], (ServerShape("half", {"VCPU": 500}),))
    in_parts = type(workload)(
        workload.name,
        workload.shapes,
        workload.arrivals_s,
        workload.leavings_s,
        workload.shape_codes,
        workload.batches,
        parts={"VCPU": 1000},
    )
    table = table_of(hosts_of(1, vcpus=2), in_parts)
    assert table.free["VCPU"].tolist() == [2000.0]


@pytest.mark.parametrize("count", [0, None, 2_000_000])
def test_a_fleet_has_a_sensible_size(count: int | None) -> None:
    with pytest.raises(Invalid, match="between 1 and"):
        table_of([HostGroup(HostShape("one", {"VCPU": 1}), count)], WORKLOAD)


def test_shapes_that_no_host_can_take_are_found() -> None:
    workload = workload_of([(0, 1, code, code) for code in range(3)])
    assert lacking(hosts_of(1, vcpus=2, memory_gb=8), workload) == ("4c4g", "2c12g")
    both = [*hosts_of(1, vcpus=2, memory_gb=12), *hosts_of(1, vcpus=4, memory_gb=4)]
    assert lacking(both, workload) == ()
    generous = HostShape("generous", {"VCPU": 2, "MEMORY_MB": 16384}, {"VCPU": 16.0})
    assert lacking([HostGroup(generous, 1)], workload) == ("4c4g",), "one server is no pair"
    assert SHAPES[1].amounts["VCPU"] == 4
