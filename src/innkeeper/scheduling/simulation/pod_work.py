"""Make the work of projects: the servers of a workload, and volumes for these servers.

A workload that names no projects is divided among several projects. The first projects get most of
the work. Random draws decide which project sends a request, and which servers get a volume.

Always true: the same workload, options and seed result in the same work. A volume is made after its
server, and leaves with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from innkeeper.domain.pods import DISK_GB, MEMORY_MB, VCPUS, VOLUME_GB
from innkeeper.scheduling.simulation.workload import MEMORY_MB as MEMORY_CLASS
from innkeeper.scheduling.simulation.workload import VCPU, Codes, Workload

KINDS = {VCPU: VCPUS, MEMORY_CLASS: MEMORY_MB, "DISK_GB": DISK_GB}
"""For each resource class, the kind of amounts of a pod that it counts as."""
DELAY_MEAN_S = 14_400.0
"""The mean time between a server and its volume, in seconds."""


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """The options for making work from a workload.

    ``projects`` is the number of projects if the workload names no projects. Each server gets a
    volume with the probability ``volume_share``. ``volume_gb`` is the mean size of a volume.
    """

    projects: int = 100
    volume_share: float = 0.5
    volume_gb: float = 100.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a project: servers of one batch, or a volume for a server.

    ``amounts`` are the amounts of the whole request. ``rows`` are the rows of the servers, or of
    the server that gets the volume. ``leavings_s`` has the time at which each of these servers
    leaves.
    """

    at_s: float
    project: int
    amounts: Mapping[str, float]
    rows: Sequence[int]
    leavings_s: Sequence[float]
    is_volume: bool = False

    @property
    def one(self) -> dict[str, float]:
        """The amounts of one server, or of the volume."""
        return {kind: amount / len(self.rows) for kind, amount in self.amounts.items()}


def jobs_of(workload: Workload, options: WorkOptions) -> list[Job]:
    """Return all requests, in the order of time."""
    dice = np.random.Generator(np.random.PCG64(options.seed))
    found = _servers(workload, _projects(workload, options, dice))
    found += _volumes(workload, found, options, dice)
    return sorted(found, key=lambda each: each.at_s)


def _projects(workload: Workload, options: WorkOptions, dice: np.random.Generator) -> Codes:
    """Return the project of each request."""
    starts = workload.requests()[:-1]
    if workload.project_codes is not None and len(workload.projects) > 1:
        return workload.project_codes[starts]
    # Few projects do most of the work, according to Zipf's law.
    shares = 1.0 / np.arange(1, options.projects + 1)
    edges = np.cumsum(shares / shares.sum())
    drawn = np.searchsorted(edges, dice.random(len(starts)), side="right")
    return np.minimum(drawn, options.projects - 1).astype(np.int64)


def _servers(workload: Workload, projects: Codes) -> list[Job]:
    amounts = [
        {
            kind: shape.amounts[name] / workload.parts.get(name, 1)
            for name, kind in KINDS.items()
            if name in shape.amounts
        }
        for shape in workload.shapes
    ]
    bounds = workload.requests()
    found = []
    for number, (start, end) in enumerate(pairwise(bounds)):
        one = amounts[int(workload.shape_codes[start])]
        found.append(
            Job(
                float(workload.arrivals_s[start]),
                int(projects[number]),
                {kind: amount * int(end - start) for kind, amount in one.items()},
                range(int(start), int(end)),
                workload.leavings_s[start:end].tolist(),
            )
        )
    return found


def _volumes(
    workload: Workload, servers: Sequence[Job], options: WorkOptions, dice: np.random.Generator
) -> list[Job]:
    has_one = dice.random(workload.count) < options.volume_share
    sizes = np.maximum(1, np.rint(dice.exponential(options.volume_gb, workload.count)))
    moments = workload.arrivals_s + dice.exponential(DELAY_MEAN_S, workload.count)
    # There are no requests after the end of the trace.
    has_one &= moments < np.minimum(workload.leavings_s, workload.arrivals_s[-1])
    return [
        Job(
            float(moments[row]),
            each.project,
            {VOLUME_GB: float(sizes[row])},
            (row,),
            (leaving,),
            is_volume=True,
        )
        for each in servers
        for row, leaving in zip(each.rows, each.leavings_s, strict=True)
        if has_one[row]
    ]
