"""The simulator's composition root: options become a workload, hosts, policies and results."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from innkeeper.domain.errors import BROKEN_IMPORT, Invalid, Refusal
from innkeeper.entrypoints.simulator import host_files, hosts, page, policies, progress, tables
from innkeeper.entrypoints.simulator.running import Results, Simulation
from innkeeper.entrypoints.simulator.traces import detection
from innkeeper.scheduling.simulation.replay import ReplayOptions
from innkeeper.scheduling.simulation.workload import ServerShape, Workload

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""
FAILED = 2
PAGE = "simulation.html"


def run(options: Mapping[str, Any]) -> int:
    """Simulate, print the results and write them; gives the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # Names may hold what a terminal's encoding cannot show.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # Whoever reads the tables has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Refusal as refusal:
        sys.stderr.write(f"innkeeper simulate: {refusal.message}\n")
        return FAILED
    except OSError as error:
        sys.stderr.write(f"innkeeper simulate: {error}\n")
        return FAILED
    except MemoryError:
        sys.stderr.write("innkeeper simulate: that does not fit into the memory.\n")
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("innkeeper simulate: interrupted.\n")
        return INTERRUPTED


def _run(options: Mapping[str, Any]) -> None:
    out: Path | None = options["out"]
    plots: ModuleType | None = None
    if out is not None:
        # Before the replays: after them, all their time would have been for nothing.
        plots = _plots()
        out.mkdir(parents=True, exist_ok=True)
    chosen = policies.parse(options)
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
        watcher=progress.shown_on(sys.stderr),
    )
    results = simulation.run(is_compact=options["compact"])
    _print(results)
    if out is not None and plots is not None:
        _write(results, out, plots)


def _plots() -> ModuleType:
    """The module that draws. Only to import it proves that matplotlib is there and whole."""
    try:
        if find_spec("matplotlib") is None:
            raise _lacking("not installed: install innkeeper[simulate]")
        from innkeeper.entrypoints.simulator import plots  # noqa: PLC0415 - drags in matplotlib
    except BROKEN_IMPORT as error:
        why = str(error).strip().splitlines()
        cause = ": ".join([type(error).__name__, *why[:1]]).removesuffix(".")
        raise _lacking(f"there, but cannot be imported ({cause}): install it anew") from error
    return plots


def _lacking(what: str) -> Invalid:
    return Invalid(
        f"Plots and the page need matplotlib, which is {what}, or leave --out away and read "
        "the numbers."
    )


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
    parts = ["\n".join(tables.summary(results))]
    parts += [tables.text_of(each) for each in tables.all_of(results)]
    sys.stdout.write("\n\n".join(parts) + "\n")


def _write(results: Results, out: Path, plots: ModuleType) -> None:
    drawn = plots.all_of(results)
    for name, plot in drawn.items():
        (out / name).write_bytes(plot)
    (out / PAGE).write_text(page.html(results, drawn), encoding="utf-8")
    sys.stdout.write(f"\nPlots and the page are in {out}: {PAGE}, {', '.join(drawn)}\n")
