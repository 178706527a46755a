"""``python -m benchmarks``: everything, in one run on one machine."""

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
    claiming,
    database_servers,
    deciding,
    dedicating,
    explaining,
    history,
    loading,
    machine,
    report,
    running,
    searching,
    serving,
    several_processes,
    together,
)
from benchmarks.figures import Figure
from benchmarks.serving import Plan

PARTS = (
    "deciding",
    "dedicating",
    "explanations",
    "loading",
    "serving",
    "together",
    "building",
    "placement_claims",
    "candidates",
    "several_processes",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """The amount of work in a run."""

    decided_hosts: tuple[int, ...]
    decisions: int
    loaded_hosts: int
    repetitions: int
    explaining: explaining.Plan
    serving: Plan
    together: together.Plan
    building: Plan
    claiming: claiming.Plan
    searching: searching.Plan
    several: several_processes.Plan


FULL = Extent(
    decided_hosts=(1_000, 10_000, 100_000),
    decisions=1_000,
    loaded_hosts=100_000,
    repetitions=3,
    explaining=explaining.Plan(10_000, rounds=200),
    serving=Plan((1_000, 10_000), (1, 16), seconds=5.0, repetitions=3),
    together=together.Plan((10_000,), requests=10),
    building=Plan((1_000,), (1, 16), seconds=5.0, repetitions=3),
    claiming=claiming.Plan(1_000, (1, 8, 64), seconds=5.0, repetitions=3),
    searching=searching.Plan((1_000, 10_000), seconds=5.0),
    several=several_processes.Plan((8, 10_000), (1, 2, 4), 16, seconds=1.25, repetitions=2),
)
QUICK = Extent(
    decided_hosts=(1_000, 10_000, 100_000),
    decisions=200,
    loaded_hosts=10_000,
    repetitions=1,
    explaining=explaining.Plan(10_000, rounds=60),
    serving=Plan((1_000, 10_000), (1, 16), seconds=1.5, repetitions=1),
    together=together.Plan((10_000,), requests=3),
    building=Plan((1_000,), (16,), seconds=1.5, repetitions=1),
    claiming=claiming.Plan(1_000, (1, 8, 64), seconds=1.5, repetitions=1),
    searching=searching.Plan((1_000, 10_000), seconds=1.0),
    several=several_processes.Plan((10_000,), (1, 4), 16, seconds=0.5, repetitions=1),
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
    """Measure, print, compare with the last record; gives the exit status."""
    wanted = _parser().parse_args(arguments)
    # Stores are opened in this process too, and would log each database as a service does.
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
    if not wanted.quick and not wanted.part and not wanted.unrecorded:
        history.append(record)
    return 1 if is_worse and wanted.strict else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about two minutes; not recorded")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into a page")
    parser.add_argument("--strict", action="store_true", help="exit 1 after a loss of 10 %%")
    parser.add_argument("--unrecorded", action="store_true", help="leave the history alone")
    parser.add_argument(
        "--directory", default=".", help="where the databases lie meanwhile; a real disk"
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
        "explanations": lambda: explaining.measure(directory, extent.explaining),
        "loading": lambda: loading.measure(directory, extent.loaded_hosts, extent.repetitions),
        "serving": lambda: serving.measure(directory, extent.serving, is_building=False),
        "together": lambda: together.measure(directory, extent.together),
        "building": lambda: serving.measure(directory, extent.building, is_building=True),
        "placement_claims": lambda: claiming.measure(directory, extent.claiming),
        "candidates": lambda: searching.measure(directory, extent.searching),
        "several_processes": lambda: several_processes.measure(directory, extent.several),
    }
    return measures[part]()


def _shown(part: str, figures: Iterable[Figure], extent: Extent, paper: Paper) -> list[Figure]:
    """Measure one part and print its tables."""
    found = {each.name: each for each in figures}
    tables = _tables(part, extent, found)
    paper.write("\n\n".join((f"### {TITLES[part]}", *tables)))
    return list(found.values())


def _tables(part: str, extent: Extent, found: report.Found) -> Sequence[str]:
    claims = extent.claiming
    searched = (found, searching.MACHINES, extent.searching.host_counts)
    makers: Mapping[str, Callable[[], Sequence[str]]] = {
        "deciding": lambda: [report.deciding(found, deciding.cases(extent.decided_hosts))],
        "dedicating": lambda: [report.dedicating(found, dedicating.KINDS)],
        "explanations": lambda: [report.explaining(found, extent.explaining.hosts)],
        "loading": lambda: [report.loading(found, extent.loaded_hosts)],
        "serving": lambda: _of_boots(found, "boot", extent.serving),
        "together": lambda: [report.together(found, extent.together.host_counts)],
        "building": lambda: _of_boots(found, "building", extent.building),
        "placement_claims": lambda: [
            report.serving(
                found, "claim", [claims.providers], claims.client_counts, ("providers", "claims/s")
            )
        ],
        "candidates": lambda: [
            report.searching(*searched, searching.LIMITS),
            report.reading(*searched),
        ],
        "several_processes": lambda: _of_several(found, extent.several),
    }
    return makers[part]()


def _of_boots(found: report.Found, kind: str, plan: Plan) -> Sequence[str]:
    return [
        report.serving(found, kind, plan.host_counts, plan.client_counts),
        report.memory(found, kind, plan.host_counts),
    ]


def _of_several(found: report.Found, plan: several_processes.Plan) -> Sequence[str]:
    names = tuple(database_servers.SERVERS)
    rows = tuple(itertools.product(names, plan.host_counts, plan.process_counts))
    flush_us = machine.flush_us(Path(tempfile.gettempdir()))
    head = report.servers(database_servers.versions(), flush_us)
    return [head, *(report.several(found, kind, rows) for kind in ("claim", "boot"))]


TITLES = {
    "deciding": "One decision inside the process",
    "dedicating": "One decision at 10,000 hosts, by what there is of pclouds",
    "explanations": "Boots, decided and durable, by what is kept of their decisions",
    "loading": "Reading the host table from SQLite",
    "serving": "Durable POST /servers beside an empty authenticated POST; no agent runs",
    "together": "One durable POST /servers for 1,000 servers",
    "building": "The same while an agent carries the builds out",
    "placement_claims": "Durable PUT /allocations/{consumer} beside an empty POST",
    "candidates": "GET /allocation_candidates, one client",
    "several_processes": "Claims and boots by way of several processes, 16 clients",
}


def _compare(kind: str, found: list[Figure]) -> bool:
    before = history.last(kind)
    if before is None:
        print("\nThere is no earlier record of a machine of this kind to compare with.")
        return False
    lost = list(history.losses(before, found))
    print(f"\nCompared with {before['commit']} of {before['at']}:", end=" ")
    print("\n*** LOSS: ".join(("something got worse.", *lost)) if lost else "no loss over 10 %.")
    return bool(lost)


if __name__ == "__main__":
    raise SystemExit(main())
