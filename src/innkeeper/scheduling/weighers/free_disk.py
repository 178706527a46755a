"""Prefer hosts with more disk left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "FreeDiskWeigher"
READS: Reads = ()
AGGREGATE_KEY = "disk_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """What is left of ``DISK_GB``, in its units."""
    if "DISK_GB" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("DISK_GB", rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """The most that one host or pool has of it."""
    return hosts.greatest("DISK_GB")
