"""Keep only hosts with fewer servers than the limit."""

from __future__ import annotations

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "NumInstancesFilter"
REASON = "the host has the maximum number of servers"
READS: Reads = ("rules",)
NEEDS_SERVERS = True


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the host may have one more server."""
    allowed: Mask = hosts.server_counts[rows] < spec.rules.servers_per_host_max
    return allowed


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the limit, and the smallest number of servers on any host."""
    text = f"fewer than {spec.rules.servers_per_host_max} servers required"
    if hosts.host_count:
        text += f"; every host has at least {int(hosts.server_counts.min())}"
    return text


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """State the number of servers on the host, and the limit."""
    most = spec.rules.servers_per_host_max
    return [f"{int(hosts.server_counts[index])} servers; fewer than {most} required"]
