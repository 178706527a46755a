"""Only hosts with fewer busy servers than the limit."""

from __future__ import annotations

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "IoOpsFilter"
REASON = "the host is building or moving too many servers already"
READS: Reads = ("rules",)
NEEDS_SERVERS = True


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the number of busy servers is below the limit."""
    allowed: Mask = hosts.busy_counts[rows] < spec.rules.busy_servers_per_host_max
    return allowed


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe the limit, and the smallest number on any host."""
    text = f"fewer than {spec.rules.busy_servers_per_host_max} busy servers required"
    if hosts.host_count:
        text += f", at least {int(hosts.busy_counts.min())} on every host"
    return text


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Describe the number of busy servers on the host, and the limit."""
    most = spec.rules.busy_servers_per_host_max
    return [f"{int(hosts.busy_counts[index])} busy servers, {most} are too many"]
