"""Keep only hosts of the servers in the hint ``same_host``."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "SameHostFilter"
REASON = "the host has no server named in the hint same_host"
READS: Reads = ("same_hosts",)
HINTS = ("same_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True on hosts with at least one of the servers in the hint."""
    if spec.same_hosts is None:
        return None
    return named(hosts, spec.same_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the number of hosts with the servers in the hint."""
    return f"the servers named in the hint same_host are on {len(spec.same_hosts or ())} hosts"
