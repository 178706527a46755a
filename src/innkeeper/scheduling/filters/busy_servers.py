"""Keep only hosts with fewer busy servers than the limit.

A server is busy while it is being built, resized, migrated or shelved.
"""

from __future__ import annotations

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "IoOpsFilter"
REASON = "too many servers are being built, resized, migrated or shelved on the host"
READS: Reads = ("rules",)
NEEDS_SERVERS = True


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the number of busy servers is below the limit."""
    allowed: Mask = hosts.busy_counts[rows] < spec.rules.busy_servers_per_host_max
    return allowed


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the limit, and the smallest number of busy servers on any host."""
    text = f"fewer than {spec.rules.busy_servers_per_host_max} busy servers required"
    if hosts.host_count:
        text += f"; every host has at least {int(hosts.busy_counts.min())}"
    return text


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """State the number of busy servers on the host, and the limit."""
    most = spec.rules.busy_servers_per_host_max
    return [f"{int(hosts.busy_counts[index])} busy servers; fewer than {most} required"]
