"""Prefer hosts with more vcpus left; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.snapshot.columns import HostTable

NAME = "FreeVcpusWeigher"


def column(hosts: HostTable, spec: RequestSpec, rows: slice) -> Weights:
    """What is left of ``VCPU``, in its units."""
    if "VCPU" not in hosts.free:
        return np.zeros(hosts.host_count)[rows]
    return hosts.left("VCPU", rows)
