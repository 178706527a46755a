"""A filter with a defect: it never returns once there are hosts."""

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
    """Block for ever, except on the empty table of the check at the start."""
    if not hosts.host_count:
        return None
    threading.Event().wait()
    return None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Return a fixed text."""
    return "nothing is missing"
