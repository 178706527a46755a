"""Only hosts with fewer servers than a host may have."""

from __future__ import annotations

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "NumInstancesFilter"
REASON = "the host has as many servers as it may have"
READS: Reads = ("rules",)
NEEDS_SERVERS = True


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where there is one more allowed."""
    allowed: Mask = hosts.server_counts[rows] < spec.rules.servers_per_host_max
    return allowed


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How many may be, and how many there are where there are fewest."""
    most = spec.rules.servers_per_host_max
    told = f"fewer than {most} servers asked for"
    if hosts.host_count:
        told += f", at least {int(hosts.server_counts.min())} on every host"
    return told


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """How many there are on one host."""
    most = spec.rules.servers_per_host_max
    return [f"{int(hosts.server_counts[index])} servers of at most {most}"]
