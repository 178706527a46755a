"""Prefer hosts with more servers. A negative multiplier prefers hosts with fewer servers."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "NumInstancesWeigher"
READS: Reads = ("rules",)
AGGREGATE_KEY = "num_instances_weight_multiplier"
NEEDS_SERVERS = True


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the number of servers on each host."""
    return hosts.server_counts[rows].astype(np.float64)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return the maximum number of servers per host."""
    return float(max(1, spec.rules.servers_per_host_max))
