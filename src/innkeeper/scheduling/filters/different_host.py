"""No host that a server named in the hint ``different_host`` is on."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "DifferentHostFilter"
REASON = "a server to be apart from is there"
READS: Reads = ("different_hosts",)
HINTS = ("different_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where none of the servers is."""
    if not spec.different_hosts:
        return None
    return ~named(hosts, spec.different_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """On how many hosts the servers are."""
    return f"the servers named in the hint different_host are on {len(spec.different_hosts)} hosts"
