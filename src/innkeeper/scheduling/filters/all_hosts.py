"""Let all hosts pass."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "AllHostsFilter"
REASON = "no host is removed"
READS: Reads = ()


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return None, because the filter applies to no request."""
    return None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Return a constant text, because the filter never removes a host."""
    return "nothing is missing"
