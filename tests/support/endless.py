"""A filter that never comes to an end, as one with a defect may not."""

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
    """Wait for what never happens."""
    threading.Event().wait()
    return None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Nothing ever is."""
    return "nothing is missing"
