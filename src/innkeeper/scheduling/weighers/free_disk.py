"""Prefer hosts with more disk left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.snapshot.columns import HostTable

NAME = "FreeDiskWeigher"


def column(hosts: HostTable, spec: RequestSpec, rows: slice) -> Weights:
    """What is left of ``DISK_GB``, in its units."""
    if "DISK_GB" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("DISK_GB", rows)
