"""Prefer the host that will be fullest. The class with the highest used share decides.

A negative multiplier prefers the emptiest host. Used shares are comparable between hosts of
different sizes.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "FillFirstWeigher"
READS: Reads = ("amounts",)
AGGREGATE_KEY = "fill_first_weight_multiplier"

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the highest used share of any class after placement: 0 for empty, 1 for full."""
    names = [name for name in CLASSES if name in hosts.free]
    shares = [_share(hosts, name, spec.amounts.get(name, 0), rows) for name in names]
    return reduce(np.maximum, shares) if shares else np.zeros(hosts.host_count)[rows]


def _share(hosts: HostTable, name: str, amount: int, rows: Rows) -> Weights:
    used = hosts.used[name][rows]
    capacity = hosts.free[name][rows] + used
    # A host without capacity for a class borrows the class or does not need it.
    shares: Weights = np.where(capacity > 0.0, (used + amount) / np.maximum(capacity, 1.0), 0.0)
    return shares


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return 1, the used share of a full host."""
    return 1.0
