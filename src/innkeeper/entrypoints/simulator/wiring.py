"""Runs ``innkeeper simulate``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from rich.progress import TaskProgressColumn, TextColumn

from innkeeper.domain.errors import BROKEN_IMPORT, Invalid
from innkeeper.entrypoints.simulator import (
    host_files,
    hosts,
    page,
    plain_results,
    pod_tables,
    pods,
    policies,
    tables,
    trees,
)
from innkeeper.entrypoints.simulator.running import Results, Simulation
from innkeeper.entrypoints.simulator.text_tables import text_of
from innkeeper.entrypoints.simulator.traces import detection
from innkeeper.scheduling.simulation.pod_replay import PodReplay
from innkeeper.scheduling.simulation.pod_work import WorkOptions, jobs_of
from innkeeper.scheduling.simulation.replay import ReplayOptions
from innkeeper.scheduling.simulation.tree_decisions import TreeOptions
from innkeeper.scheduling.simulation.workload import ServerShape, Workload
from innkeeper.terminal.ending import run_command
from innkeeper.terminal.progress import AttemptProgress, Bars, Lines

PAGE = "simulation.html"
OF_HOSTS: Mapping[str, Any] = {
    "policy": [],
    "tree": [],
    "out": None,
    "compact": False,
    "filters": None,
    "weighers": None,
    "driver": None,
    "reference": None,
    "all_or_none": False,
}
"""Options that simulations of pods reject, with their default values."""


def run(options: Mapping[str, Any]) -> int:
    """Run the simulation, print and write the results, and return the exit status."""
    return run_command(
        "simulate",
        lambda: _run(options),
        closed=0,
        memory="there is not enough memory for the trace and the hosts.",
        interrupted="interrupted.",
    )


def progress_on(stream: TextIO) -> AttemptProgress:
    """Return an object that shows progress as bars on a terminal, and as lines elsewhere."""
    if not stream.isatty():
        return Lines(stream, noun="servers", tells_start=False)
    count = TextColumn("{task.completed:.0f} of {task.total:.0f} servers")
    return Bars(stream, TaskProgressColumn(show_speed=True), count)


def _run(options: Mapping[str, Any]) -> int:
    return _of_pods(options) if options["pods"] is not None else _of_hosts(options)


def _of_pods(options: Mapping[str, Any]) -> int:
    for name, unset in OF_HOSTS.items():
        if options[name] != unset:
            raise Invalid(f"--{name.replace('_', '-')} is for hosts, not for pods.")
    compared = pods.parse(options)
    workload = detection.load(options["trace"], options["machine"])
    drawn = WorkOptions(
        options["projects"], options["volume_share"], options["volume_gb"], options["seed"]
    )
    work = jobs_of(workload, drawn)
    progress = progress_on(sys.stderr)
    outcomes = []
    for each in compared:
        with progress.step(each.name, workload.count) as advance:
            replay = PodReplay(work, each.pods, each.policy, options["measure_s"])
            outcomes.append((each, replay.run(advance)))
    if options["json"]:
        sys.stdout.write(pod_tables.json_of(workload, outcomes) + "\n")
    else:
        shown = ["\n".join(pod_tables.summary(workload, outcomes))]
        shown += map(text_of, pod_tables.all_of(outcomes))
        sys.stdout.write("\n\n".join(shown) + "\n")
    return 0


def _of_hosts(options: Mapping[str, Any]) -> int:
    if options["pod_policy"]:
        raise Invalid("--pod-policy is for pods, not for hosts.")
    out: Path | None = options["out"]
    plots: ModuleType | None = None
    if out is not None:
        # Check this before the replays, which may take long.
        plots = _plots()
        out.mkdir(parents=True, exist_ok=True)
    chosen = policies.parse(options)
    compared = trees.parse(options["tree"], options["deal"])
    for policy in chosen:
        for zone in (zone for tree in compared for zone in tree.root.preorder()):
            # Check the names in trees before the first replay.
            policy.changed(zone.changes).scheduler()
    file = hosts.file_of(options["hosts"])
    groups = hosts.parse(options["hosts"]) if file is None else host_files.load(file)
    workload = detection.load(options["trace"], options["machine"])
    replay_options = ReplayOptions(
        seed=options["seed"],
        reference=_reference(options["reference"], workload),
        is_whole=options["all_or_none"],
    )
    simulation = Simulation(
        workload,
        groups,
        chosen,
        replay_options,
        clock=time.perf_counter,
        progress=progress_on(sys.stderr),
        trees=compared,
        tree_options=TreeOptions(options["lag"], options["late"], options["merge"]),
    )
    results = simulation.run(is_compact=options["compact"])
    if options["json"]:
        sys.stdout.write(plain_results.json_of(results) + "\n")
    else:
        _print(results)
    if out is not None and plots is not None:
        # The note about the files must not be part of the JSON.
        _write(results, out, plots, sys.stderr if options["json"] else sys.stdout)
    return 0


def _plots() -> ModuleType:
    """Import the plotting module. Only the import proves that matplotlib works."""
    try:
        if find_spec("matplotlib") is None:
            raise _lacking("not installed: install innkeeper[simulate]")
        from innkeeper.entrypoints.simulator import plots  # noqa: PLC0415 - imports matplotlib
    except BROKEN_IMPORT as error:
        why = str(error).strip().splitlines()
        cause = ": ".join([type(error).__name__, *why[:1]]).removesuffix(".")
        raise _lacking(f"installed, but cannot be imported ({cause}): reinstall it") from error
    return plots


def _lacking(what: str) -> Invalid:
    return Invalid(f"Plots and the page need matplotlib, which is {what}; or omit --out.")


def _reference(text: str | None, workload: Workload) -> ServerShape | None:
    if text is None:
        return None
    for shape in workload.shapes:
        if shape.name == text:
            return shape
    amounts = hosts.shape_amounts(text)
    return ServerShape(
        text, {name: amount * workload.parts.get(name, 1) for name, amount in amounts.items()}
    )


def _print(results: Results) -> None:
    parts = ["\n".join(tables.summary(results)), *map(text_of, tables.all_of(results))]
    sys.stdout.write("\n\n".join(parts) + "\n")


def _write(results: Results, out: Path, plots: ModuleType, stream: TextIO) -> None:
    drawn = plots.all_of(results)
    for name, plot in drawn.items():
        (out / name).write_bytes(plot)
    (out / PAGE).write_text(page.html(results, drawn), encoding="utf-8")
    stream.write(f"\nPlots and the page are in {out}: {PAGE}, {', '.join(drawn)}\n")
