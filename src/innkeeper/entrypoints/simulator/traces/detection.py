"""Detects the kind of a trace by its content, and reads it."""

from __future__ import annotations

from pathlib import Path

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces import arrivals, gpu_pods, packing, plain, synthetic
from innkeeper.entrypoints.simulator.traces.text_rows import DATABASE_HEAD, head_of, header_of
from innkeeper.scheduling.simulation.workload import Workload


def load(text: str, machine: str | None) -> Workload:
    """Read the trace that the command line names, or generate a synthetic trace.

    ``machine`` selects a kind of machine in a trace with several kinds.
    """
    if text.startswith(synthetic.PREFIX):
        _demand_no_machine(machine)
        return synthetic.make(text)
    if not text.strip():
        raise Invalid("The trace has no name.")
    path = Path(text)
    if path.is_dir():
        path = arrivals.among(path)
    head = head_of(path)
    if head.startswith(DATABASE_HEAD):
        return packing.load(path, machine)
    _demand_no_machine(machine)
    if arrivals.is_one(head):
        return arrivals.load(path)
    header = header_of(path)
    if gpu_pods.is_one(header):
        return gpu_pods.load(path)
    if plain.is_one(header):
        return plain.load(path)
    raise Invalid(
        f"{path.name} is not a known trace: neither an arrival trace, a packing "
        "trace (SQLite), a table of GPU pods, nor a table with a column arrival_s."
    )


def _demand_no_machine(machine: str | None) -> None:
    if machine is not None:
        raise Invalid("--machine is for packing traces only.")
