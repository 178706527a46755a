"""Exclude the hosts of the servers in the hint ``different_host``."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "DifferentHostFilter"
REASON = "the host has a server named in the hint different_host"
READS: Reads = ("different_hosts",)
HINTS = ("different_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True on hosts without any of the servers in the hint."""
    if not spec.different_hosts:
        return None
    return ~named(hosts, spec.different_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the number of hosts with the servers in the hint."""
    return f"the servers named in the hint different_host are on {len(spec.different_hosts)} hosts"
