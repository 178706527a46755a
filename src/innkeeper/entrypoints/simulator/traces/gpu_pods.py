"""Reads the Alibaba GPU trace of 2023, a CSV file of pods with cores, memory and shares of GPUs.

Cores and GPUs are counted in thousandths. Single GPUs are not simulated. A pod takes its share from
the sum of its host's GPUs, so it may get a host on which no single GPU has enough free capacity. A
pod that names GPU models requires the capability ``gpu_model``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.text_rows import TextRow, rows_of
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered

THOUSANDTHS = 1000
PARTS = {"VCPU": THOUSANDTHS, "PGPU": THOUSANDTHS}
MODEL = "gpu_model"
COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


def is_one(header: tuple[str, ...]) -> bool:
    """Return whether a table with this header is a GPU trace."""
    return {"cpu_milli", "num_gpu", "gpu_milli"} <= set(header)


def load(path: Path) -> Workload:
    """Read the pods. If a pod had to wait, its lifetime begins when it was scheduled."""
    shapes: list[ServerShape] = []
    known: dict[tuple[object, ...], int] = {}
    created, left, codes = [], [], []
    for row in rows_of(path, COLUMNS):
        amounts, spec = _amounts(row), row.text("gpu_spec")
        key = (*amounts.items(), spec)
        if key not in known:
            known[key] = len(shapes)
            shapes.append(_shape(row, amounts, spec))
        arrival = row.needed("creation_time", 0)
        created.append(arrival)
        left.append(arrival + _lifetime(row, arrival))
        codes.append(known[key])
    if not created:
        raise Invalid(f"{path.name} contains no pods.")
    arrivals, leavings, columns = ordered(np.array(created), np.array(left), np.array(codes))
    return Workload(
        path.name,
        tuple(shapes),
        arrivals,
        leavings,
        columns[0],
        np.arange(len(created)),
        parts=PARTS,
        notes=("shares of GPUs are counted per host, not per GPU",),
    )


def _amounts(row: TextRow) -> dict[str, int]:
    gpus = row.whole("num_gpu", default=0)
    share = row.whole("gpu_milli", default=0)
    if gpus and not 0 < share <= THOUSANDTHS:
        raise row.error(f"gpu_milli is {share}, and must be between 1 and {THOUSANDTHS}")
    wanted = {
        "VCPU": row.whole("cpu_milli"),
        "MEMORY_MB": row.whole("memory_mib"),
        "PGPU": gpus * share,
    }
    found = {name: amount for name, amount in wanted.items() if amount}
    if not found:
        raise row.error("the pod requests no resources")
    return found


def _shape(row: TextRow, amounts: dict[str, int], spec: str | None) -> ServerShape:
    name = f"{amounts.get('VCPU', 0) / THOUSANDTHS:g}c{amounts.get('MEMORY_MB', 0)}m"
    if "PGPU" in amounts:
        name += f"+{amounts['PGPU'] / THOUSANDTHS:g}gpu"
    if spec is None:
        return ServerShape(name, amounts)
    models = [model for model in spec.split("|") if model]
    if not models:
        raise row.error(f"gpu_spec is {spec!r}, and must name models separated by '|'")
    words = " ".join(f"{comparisons.OR} {model}" for model in models)
    return ServerShape(f"{name} {spec}", amounts, (comparisons.parse(MODEL, words),))


def _lifetime(row: TextRow, arrival: float) -> float:
    began, ended = row.number("scheduled_time", 0), row.number("deletion_time", 0)
    if ended is None:
        return NEVER
    began = arrival if began is None else began
    if ended < began:
        raise row.error("the pod is deleted before it begins")
    return ended - began
