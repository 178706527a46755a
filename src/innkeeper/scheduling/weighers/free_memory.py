"""Prefer hosts with more memory left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "FreeMemoryWeigher"
READS: Reads = ()
AGGREGATE_KEY = "ram_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """What is left of ``MEMORY_MB``, in its units."""
    if "MEMORY_MB" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("MEMORY_MB", rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """The most that one host or pool has of it."""
    return hosts.greatest("MEMORY_MB")
