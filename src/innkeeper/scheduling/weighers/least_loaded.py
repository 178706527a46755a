"""Prefer hosts with fewer vcpus given out, however many they have."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "LeastLoadedWeigher"
READS: Reads = ()
AGGREGATE_KEY = "least_loaded_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """How many ``VCPU`` are given out, as a negative number."""
    if "VCPU" not in hosts.used:
        return np.zeros(hosts.host_count)[rows]
    taken: Weights = -hosts.used["VCPU"][rows]
    return taken


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """The most that one host has of them."""
    return hosts.greatest("VCPU")
