"""Only hosts that servers named in the hint ``same_host`` are on."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "SameHostFilter"
REASON = "none of the servers to be near to is there"
READS: Reads = ("same_hosts",)
HINTS = ("same_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where one of the servers is; nowhere if they are on no host at all."""
    if spec.same_hosts is None:
        return None
    return named(hosts, spec.same_hosts, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """On how many hosts the servers are."""
    return f"the servers named in the hint same_host are on {len(spec.same_hosts or ())} hosts"
