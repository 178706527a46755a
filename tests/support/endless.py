"""A filter that never comes to an end once there are hosts, as one with a defect may not."""

from __future__ import annotations

import threading

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "EndlessFilter"
REASON = "nobody lives to tell"
READS: Reads = ()


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Wait for what never happens; but not at the start, when it is tried without hosts."""
    if not hosts.host_count:
        return None
    threading.Event().wait()
    return None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Nothing ever is."""
    return "nothing is missing"
