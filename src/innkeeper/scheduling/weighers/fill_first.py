"""Prefer the host that will be fullest: by the share of what it has least of, in proportion.

With a negative multiplier it is spread-first: the host that will be emptiest wins. Unlike what
is free in plain numbers, shares are fair to hosts of unlike sizes.
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
    """The greatest share of a class that is taken once the server is there: 1 is all of it."""
    names = [name for name in CLASSES if name in hosts.free]
    shares = [_share(hosts, name, spec.amounts.get(name, 0), rows) for name in names]
    return reduce(np.maximum, shares) if shares else np.zeros(hosts.host_count)[rows]


def _share(hosts: HostTable, name: str, amount: int, rows: Rows) -> Weights:
    used = hosts.used[name][rows]
    capacity = hosts.free[name][rows] + used
    # A host without any of a class is not filled by it: it borrows, or is not asked.
    shares: Weights = np.where(capacity > 0.0, (used + amount) / np.maximum(capacity, 1.0), 0.0)
    return shares


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """A host that is full."""
    return 1.0
