"""Small workloads and fleets, and a slow and plain replay as a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.simulation.fleets import HostGroup, HostShape
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered
from innkeeper.snapshot.columns import HostTable

SHAPES = (
    ServerShape("1c2g", {"VCPU": 1, "MEMORY_MB": 2048}),
    ServerShape("4c4g", {"VCPU": 4, "MEMORY_MB": 4096}),
    ServerShape("2c12g", {"VCPU": 2, "MEMORY_MB": 12288}),
)

Row = tuple[float, float, int, int]
"""A server's arrival, lifetime, shape and batch."""


def workload_of(rows: Sequence[Row], shapes: Sequence[ServerShape] = SHAPES) -> Workload:
    """Return a workload of these servers."""
    table = np.array(rows, dtype=float)
    whole = table[:, 2:].astype(np.int64)
    arrivals, leavings, columns = ordered(
        table[:, 0], table[:, 0] + table[:, 1], whole[:, 0], whole[:, 1]
    )
    return Workload("test", tuple(shapes), arrivals, leavings, columns[0], columns[1])


def hosts_of(count: int, vcpus: int = 8, memory_gb: int = 16) -> list[HostGroup]:
    """Return this many hosts of one shape."""
    totals = {"VCPU": vcpus, "MEMORY_MB": memory_gb * 1024}
    return [HostGroup(HostShape(f"{vcpus}c{memory_gb}g", totals), count)]


def first_fit(hosts: HostTable, spec: RequestSpec) -> BuildPlan:
    """Plan in the simplest way: the first host with room, server by server."""
    entries = []
    for _ in range(spec.count):
        for index, provider_id in enumerate(hosts.provider_ids):
            if all(hosts.free[name][index] >= want for name, want in spec.amounts.items()):
                row = hosts.index_of[ProviderId(int(provider_id))]
                entry = Entry(row, ProviderId(int(provider_id)), hosts.names[index], 0.0)
                depletion.take(hosts, spec, entry)
                entries.append(entry)
                break
    return BuildPlan(tuple(entries), {}, hosts.host_count, 0, ())


@dataclass
class Plain:
    """A first-fit replay without columns: lists of dictionaries, one server at a time."""

    workload: Workload
    hosts: list[dict[str, int]]
    placed: dict[int, int] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)

    def leave_until(self, moment: float) -> None:
        for server, host in list(self.placed.items()):
            if self.workload.leavings_s[server] <= moment:
                for name, amount in self.needs(server).items():
                    self.hosts[host][name] += amount
                del self.placed[server]

    def needs(self, server: int) -> Mapping[str, int]:
        return self.workload.shapes[int(self.workload.shape_codes[server])].amounts

    def arrive(self, server: int) -> None:
        for number, free in enumerate(self.hosts):
            if all(free[name] >= amount for name, amount in self.needs(server).items()):
                for name, amount in self.needs(server).items():
                    free[name] -= amount
                self.placed[server] = number
                return
        self.refused.append(server)

    def until(self, moment: float) -> Plain:
        """Replay from empty hosts until a moment; returns the state."""
        for server in range(self.workload.count):
            if self.workload.arrivals_s[server] > moment:
                break
            self.leave_until(self.workload.arrivals_s[server])
            self.arrive(server)
        self.leave_until(moment)
        return self


def forever() -> float:
    """Return the lifetime of a server that never leaves."""
    return NEVER
