"""``python -m benchmarks``: runs all benchmarks on one machine, and prints their figures."""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from benchmarks import (
    agent_report,
    claiming,
    database_servers,
    deciding,
    dedicating,
    door_report,
    explaining,
    forwarding,
    history,
    lease_report,
    leasing,
    loading,
    machine,
    report,
    reporting,
    running,
    searching,
    serving,
    several_processes,
    together,
    volume_claims,
    zone_report,
    zoning,
)
from benchmarks.figures import Figure
from benchmarks.leased_fleet import Leased
from benchmarks.serving import Plan
from benchmarks.tables import Found
from innkeeper.main import keep_freed_memory

PARTS = (
    "deciding",
    "dedicating",
    "leasing",
    "explanations",
    "loading",
    "serving",
    "together",
    "building",
    "agents",
    "placement_claims",
    "volumes",
    "candidates",
    "several_processes",
    "zones",
    "door",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """Says how much work a run does."""

    decided_hosts: tuple[int, ...]
    decisions: int
    loaded_hosts: int
    repetitions: int
    leasing: leasing.Plan
    explaining: explaining.Plan
    serving: Plan
    together: together.Plan
    building: Plan
    reporting: reporting.Plan
    claiming: claiming.Plan
    volumes: volume_claims.Plan
    searching: searching.Plan
    several: several_processes.Plan
    zoning: zoning.Plan
    forwarding: forwarding.Plan


FULL = Extent(
    decided_hosts=(1_000, 10_000, 100_000),
    decisions=1_000,
    loaded_hosts=100_000,
    repetitions=3,
    leasing=leasing.Plan(
        Leased(hosts=5_000, leases=10_000, rush=1_000), 5_000, decisions=200, requests=40, boots=300
    ),
    explaining=explaining.Plan(10_000, rounds=200),
    serving=Plan((1_000, 10_000), (1, 16), seconds=5.0, repetitions=3),
    together=together.Plan((10_000,), requests=10),
    building=Plan((1_000,), (1, 16), seconds=5.0, repetitions=3),
    reporting=reporting.Plan(10_000, 4, 1_000, boots=5, rounds=10),
    claiming=claiming.Plan(1_000, (1, 8, 64), seconds=5.0, repetitions=3),
    volumes=volume_claims.Plan(1_000, (1, 16), seconds=4.0, repetitions=3),
    searching=searching.Plan((1_000, 10_000), seconds=5.0),
    several=several_processes.Plan((10_000,), (1, 2, 4), (16, 64), seconds=1.0, repetitions=2),
    zoning=zoning.Plan((1, 3, 9), 3_000, {1: 60, 100: 20, 1_000: 6}, dead_requests=10),
    forwarding=forwarding.Plan((1, 4), hosts=300, servers=1_000, requests=200, lists=30),
)
QUICK = Extent(
    decided_hosts=(1_000, 10_000, 100_000),
    decisions=200,
    loaded_hosts=10_000,
    repetitions=1,
    leasing=leasing.Plan(
        Leased(hosts=5_000, leases=10_000, rush=1_000), 5_000, decisions=50, requests=12, boots=50
    ),
    explaining=explaining.Plan(10_000, rounds=60),
    serving=Plan((1_000, 10_000), (1, 16), seconds=1.5, repetitions=1),
    together=together.Plan((10_000,), requests=3),
    building=Plan((1_000,), (16,), seconds=1.5, repetitions=1),
    reporting=reporting.Plan(10_000, 4, 1_000, boots=2, rounds=3),
    claiming=claiming.Plan(1_000, (1, 8, 64), seconds=1.5, repetitions=1),
    volumes=volume_claims.Plan(1_000, (1, 16), seconds=1.0, repetitions=1),
    searching=searching.Plan((1_000, 10_000), seconds=1.0),
    several=several_processes.Plan((10_000,), (1, 4), (16,), seconds=0.5, repetitions=1),
    zoning=zoning.Plan((1,), 3_000, {1: 20, 1_000: 2}, dead_requests=5),
    forwarding=forwarding.Plan((1,), hosts=300, servers=200, requests=50, lists=10),
)


class Paper:
    """Prints blocks, and keeps them for the page."""

    def __init__(self) -> None:
        self.blocks: list[str] = []

    def write(self, block: str) -> None:
        """Print one block and an empty line."""
        self.blocks.append(block)
        print(block + "\n", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the figures, and compare them with the last record; returns the status."""
    wanted = _parser().parse_args(arguments)
    # Some decisions are measured in this process.
    keep_freed_memory()
    # This process opens stores too. Each of them would log its database, as in a service.
    errors_only = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=errors_only)
    extent = QUICK if wanted.quick else FULL
    paper = Paper()
    started_s = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=wanted.directory, prefix="benchmark-") as directory:
        place = Path(directory)
        here = machine.look(place)
        head = report.head(here, _database_settings(place), _command(arguments))
        paper.write(f"```text\n{head}\n```")
        found = [
            figure
            for part in wanted.part or PARTS
            for figure in _shown(part, _measured(part, place, extent), extent, paper)
        ]
    verdicts = "\n".join(report.targets({each.name: each for each in found}))
    paper.write(f"```text\n{verdicts}\n```")
    print(f"Took {time.perf_counter() - started_s:.0f} s.")
    record = history.record(here, found)
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    if wanted.page is not None:
        report.put_into(wanted.page, paper.blocks)
    is_worse = _compare(here.kind, found)
    is_whole = not wanted.quick and not wanted.part and not wanted.unrecorded
    if is_whole or wanted.recorded:
        history.append(record)
    return 1 if is_worse and wanted.strict else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="run for about two minutes, and record nothing"
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="run only this part; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into a page")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with status 1 if a figure is worse by over 10 %%",
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="add the run to the history even if it is not a full run",
    )
    parser.add_argument("--unrecorded", action="store_true", help="do not add to the history")
    parser.add_argument(
        "--directory", default=".", help="folder of the temporary databases, on a real disk"
    )
    return parser


def _command(arguments: list[str] | None) -> str:
    given = sys.argv[1:] if arguments is None else arguments
    return " ".join(("python -m benchmarks", *given))


def _database_settings(place: Path) -> dict[str, str]:
    store = running.store_in(place / "settings")
    try:
        return machine.database_settings(store)
    finally:
        store.dispose()


def _measured(part: str, place: Path, extent: Extent) -> Iterable[Figure]:
    directory = place / part
    directory.mkdir()
    measures: Mapping[str, Callable[[], Iterable[Figure]]] = {
        "deciding": lambda: deciding.measure(
            extent.decided_hosts, extent.decisions, extent.repetitions
        ),
        "dedicating": lambda: dedicating.measure(extent.decisions, extent.repetitions),
        "leasing": lambda: leasing.measure(directory, extent.leasing),
        "explanations": lambda: explaining.measure(directory, extent.explaining),
        "loading": lambda: loading.measure(directory, extent.loaded_hosts, extent.repetitions),
        "serving": lambda: serving.measure(directory, extent.serving, is_building=False),
        "together": lambda: together.measure(directory, extent.together),
        "building": lambda: serving.measure(directory, extent.building, is_building=True),
        "agents": lambda: reporting.measure(directory, extent.reporting),
        "placement_claims": lambda: claiming.measure(directory, extent.claiming),
        "volumes": lambda: volume_claims.measure(directory, extent.volumes),
        "candidates": lambda: searching.measure(directory, extent.searching),
        "several_processes": lambda: several_processes.measure(directory, extent.several),
        "zones": lambda: zoning.measure(directory, extent.zoning),
        "door": lambda: forwarding.measure(directory, extent.forwarding),
    }
    return measures[part]()


def _shown(part: str, figures: Iterable[Figure], extent: Extent, paper: Paper) -> list[Figure]:
    """Measure one part and print its tables."""
    found = {each.name: each for each in figures}
    tables = _tables(part, extent, found)
    paper.write("\n\n".join((f"### {TITLES[part]}", *tables)))
    return list(found.values())


def _tables(part: str, extent: Extent, found: Found) -> Sequence[str]:
    claims = extent.claiming
    searched = (found, searching.MACHINES, extent.searching.host_counts)
    makers: Mapping[str, Callable[[], Sequence[str]]] = {
        "deciding": lambda: [report.deciding(found, deciding.cases(extent.decided_hosts))],
        "dedicating": lambda: [report.dedicating(found, dedicating.KINDS)],
        "leasing": lambda: lease_report.tables(found),
        "explanations": lambda: [report.explaining(found, extent.explaining.hosts)],
        "loading": lambda: [report.loading(found, extent.loaded_hosts)],
        "serving": lambda: _of_boots(found, "boot", extent.serving),
        "together": lambda: [report.together(found, extent.together.host_counts)],
        "building": lambda: _of_boots(found, "building", extent.building),
        "agents": lambda: agent_report.tables(found),
        "placement_claims": lambda: [
            report.serving(
                found, "claim", [claims.providers], claims.client_counts, ("providers", "claims/s")
            )
        ],
        "volumes": lambda: [report.volume_claims(found, extent.volumes.client_counts)],
        "candidates": lambda: [
            report.searching(*searched, searching.LIMITS),
            report.reading(*searched),
        ],
        "several_processes": lambda: _of_several(found, extent.several),
        "zones": lambda: zone_report.tables(
            found, extent.zoning.zone_counts, extent.zoning.requests
        ),
        "door": lambda: door_report.tables(found, extent.forwarding.pod_counts),
    }
    return makers[part]()


def _of_boots(found: Found, kind: str, plan: Plan) -> Sequence[str]:
    return [
        report.serving(found, kind, plan.host_counts, plan.client_counts),
        report.memory(found, kind, plan.host_counts),
    ]


def _of_several(found: Found, plan: several_processes.Plan) -> Sequence[str]:
    names = (several_processes.SQLITE, *database_servers.SERVERS)
    rows = tuple(
        itertools.product(names, plan.host_counts, plan.client_counts, plan.process_counts)
    )
    flush_us = machine.flush_us(Path(tempfile.gettempdir()))
    head = report.servers(database_servers.versions(), flush_us)
    return [head, *(report.several(found, kind, rows) for kind in ("claim", "boot"))]


TITLES = {
    "deciding": "One decision inside the process",
    "dedicating": "One decision at 10,000 hosts, with and without pclouds",
    "leasing": "Leases: 5,000 hosts in the freepool, 10,000 leases in the calendar",
    "explanations": "Durable boots, by how much of each decision is recorded",
    "loading": "Reading the host table from SQLite",
    "serving": "Durable POST /servers compared with an empty authenticated POST; no agent runs",
    "together": "One durable POST /servers for 1,000 servers",
    "building": "The same comparison while an agent carries out the builds",
    "agents": "Agents of 10,000 hosts: builds of 1,000 servers at once, heartbeats and reports",
    "placement_claims": "Durable PUT /allocations/{consumer} compared with an empty POST",
    "volumes": "Durable POST /volumes and POST /servers, 1,000 hosts; no agent runs",
    "candidates": "GET /allocation_candidates, one client",
    "several_processes": "Claims and boots through several processes",
    "zones": "Plans and boots over trees of zones with 3,000 hosts each",
    "door": "Requests through a door over pods, and lists of 1,000 servers",
}


def _compare(kind: str, found: list[Figure]) -> bool:
    before = history.last(kind)
    if before is None:
        print("\nNothing to compare with: there is no earlier record of a machine of this kind.")
        return False
    lost = list(history.losses(before, found))
    print(f"\nCompared with {before['commit']} of {before['at']}:", end=" ")
    print("\n*** LOSS: ".join(("something got worse.", *lost)) if lost else "no loss over 10 %.")
    return bool(lost)


if __name__ == "__main__":
    raise SystemExit(main())
