"""No host that is out of the question: the server is there already, or failed there."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "RefusedHostsFilter"
REASON = "the server is there already, or failed there"
READS: Reads = ("refused_hosts",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True for all others."""
    if not spec.refused_hosts:
        return None
    return ~named(hosts, spec.refused_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How many hosts are out of the question."""
    return f"{len(spec.refused_hosts)} hosts are out of the question for this server"
