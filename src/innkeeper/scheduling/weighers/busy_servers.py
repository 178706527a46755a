"""Prefer hosts with fewer servers that are being built, resized, migrated or shelved."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "IoOpsWeigher"
READS: Reads = ("rules",)
AGGREGATE_KEY = "io_ops_weight_multiplier"
NEEDS_SERVERS = True


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the negated number of busy servers on each host."""
    return -hosts.busy_counts[rows].astype(np.float64)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return the maximum number of busy servers per host."""
    return float(max(1, spec.rules.busy_servers_per_host_max))
