"""Prefer hosts with more vcpus left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "FreeVcpusWeigher"
READS: Reads = ()
AGGREGATE_KEY = "cpu_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """What is left of ``VCPU``, in its units."""
    if "VCPU" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("VCPU", rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """The most that one host or pool has of it."""
    return hosts.greatest("VCPU")
