"""Only hosts that are not busy with too many servers already."""

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
    """True where fewer servers are being built, resized, migrated or shelved than may be."""
    allowed: Mask = hosts.busy_counts[rows] < spec.rules.busy_servers_per_host_max
    return allowed


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How many may be, and how many there are where there are fewest."""
    most = spec.rules.busy_servers_per_host_max
    told = f"fewer than {most} servers in work asked for"
    if hosts.host_count:
        told += f", at least {int(hosts.busy_counts.min())} on every host"
    return told


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """How many are in work on one host."""
    most = spec.rules.busy_servers_per_host_max
    return [f"{int(hosts.busy_counts[index])} servers in work, {most} are too many"]
