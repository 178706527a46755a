"""Exclude hosts that already have the server, or where a build of the server failed."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "RefusedHostsFilter"
REASON = "the server is already on the host, or failed on it before"
READS: Reads = ("refused_hosts",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True for all hosts that are not excluded."""
    if not spec.refused_hosts:
        return None
    return ~named(hosts, spec.refused_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the number of excluded hosts."""
    return f"{len(spec.refused_hosts)} hosts are excluded for this server"
