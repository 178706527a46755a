"""Every host there is."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "AllHostsFilter"
REASON = "no host is removed"
READS: Reads = ()


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Nothing to say, whatever was asked for."""
    return None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Nothing ever is."""
    return "nothing is missing"
