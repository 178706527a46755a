"""Only the host that an administrator named."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ForcedHostFilter"
REASON = "the request names another host"
READS: Reads = ("forced_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True for the named host alone; nothing to say if none was named."""
    if spec.forced_host is None:
        return None
    only: Mask = np.zeros(hosts.host_count, dtype=np.bool_)
    index = hosts.index_by_name.get(spec.forced_host)
    if index is not None:
        only[index] = True
    return only[rows]


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """That one was named, but not which: owners of servers read this."""
    return "another host was asked for"
