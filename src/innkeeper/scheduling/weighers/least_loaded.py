"""Prefer hosts with fewer allocated vcpus. The capacity of hosts does not matter."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.scheduling.scales import scale_of
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "LeastLoadedWeigher"
READS: Reads = ("has_fixed_scales",)
AGGREGATE_KEY = "least_loaded_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the negated amount of ``VCPU`` that is allocated on each host."""
    if "VCPU" not in hosts.used:
        return np.zeros(hosts.host_count)[rows]
    taken: Weights = -hosts.used["VCPU"][rows]
    return taken


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return the largest capacity of ``VCPU`` on one host or pool, or the fixed scale."""
    return scale_of(hosts, spec, "VCPU")
