"""Prefer hosts with more memory left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.snapshot.columns import HostTable

NAME = "FreeMemoryWeigher"


def column(hosts: HostTable, spec: RequestSpec, rows: slice) -> Weights:
    """What is left of ``MEMORY_MB``, in its units."""
    if "MEMORY_MB" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("MEMORY_MB", rows)
