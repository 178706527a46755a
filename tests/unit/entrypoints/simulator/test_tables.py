"""Results as text: the summary, and tables with many rows."""

from __future__ import annotations

from io import StringIO

from innkeeper.entrypoints.simulator import tables, text_tables
from innkeeper.entrypoints.simulator.page import html
from innkeeper.entrypoints.simulator.policies import parse
from innkeeper.entrypoints.simulator.running import Results, Simulation
from innkeeper.scheduling.simulation.replay import ReplayOptions
from innkeeper.scheduling.simulation.workload import ServerShape
from innkeeper.terminal.progress import Lines
from tests.support.workloads import Row, forever, hosts_of, workload_of


def results_of(*named: str, shapes: int = 3, hosts: int = 4) -> Results:
    many = [ServerShape(f"<{number}>", {"VCPU": 1, "MEMORY_MB": 512}) for number in range(shapes)]
    rows: list[Row] = [(float(n), forever(), n % shapes, n) for n in range(2 * shapes)]
    policies = parse({"policy": list(named), "filters": None, "weighers": None, "driver": None})
    return Simulation(
        workload_of(rows, many),
        hosts_of(hosts),
        policies,
        ReplayOptions(samples=5),
        clock=lambda: 0.0,
        progress=Lines(StringIO()),
    ).run(is_compact=False)


def test_common_filters_are_shown_once() -> None:
    top = tables.summary(results_of("a=spread", "b=fill"))
    assert [line.split()[0] for line in top] == ["trace", "hosts", "policy", "policy", "filters"]
    assert top[0].endswith("6 servers of 3 shapes in 6 requests over 0.00 days")
    assert top[1] == "hosts 4 x 8c16g"


def test_different_filters_are_shown_by_policy() -> None:
    top = tables.summary(results_of("a=spread", "b=fill;filters=ComputeFilter"))
    assert top[-1].endswith("filters ComputeFilter")
    assert "AvailabilityZoneFilter" in top[-2]


def test_rare_flavors_are_summed_up() -> None:
    results = results_of("a=spread", shapes=25)
    by_flavor = tables.all_of(results)[-1]
    assert len(by_flavor.rows) == 21
    assert by_flavor.rows[-1] == ("5 others", "10", "5", "5")
    assert sum(int(row[1]) for row in by_flavor.rows) == 50
    assert sum(int(row[2]) for row in by_flavor.rows) == 32


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    table = text_tables.Table("Title", ("a", "long heading"), (("wide cell", "1"), ("b", "22")))
    assert text_tables.text_of(table).splitlines() == [
        "Title:",
        "  a          long heading",
        "  wide cell             1",
        "  b                    22",
    ]


def test_names_are_no_markup_on_the_page() -> None:
    text = html(results_of("a=spread"), {})
    assert "<td>&lt;1&gt;</td>" in text
    assert "<1>" not in text
