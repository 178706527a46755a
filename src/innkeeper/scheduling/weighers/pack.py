"""Pack servers into few hosts: lose little of what can still be used, and leave little over.

A host can take no more than the share of what it has least of, in proportion; more of the
other classes is of no use to anybody. So two things are dear: how much of that least share the
server takes, and the product of all shares that it leaves. The first keeps servers off hosts
where they use up what is scarce, the second fills hosts that are nearly full.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "PackWeigher"
READS: Reads = ("amounts",)
AGGREGATE_KEY = "pack_weight_multiplier"

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """The least share that is left less the one there was, less the product of those left."""
    names = [name for name in CLASSES if name in hosts.free and spec.amounts.get(name, 0)]
    if not names:
        return np.zeros(hosts.host_count)[rows]
    before = [_share(hosts, name, 0, rows) for name in names]
    after = [_share(hosts, name, spec.amounts[name], rows) for name in names]
    lost = reduce(np.minimum, before) - reduce(np.minimum, after)
    return -(lost + reduce(np.multiply, after))


def _share(hosts: HostTable, name: str, amount: int, rows: Rows) -> Weights:
    """The share of a class that is free once ``amount`` is taken: 1 is all of it."""
    free = hosts.free[name][rows]
    capacity = free + hosts.used[name][rows]
    # A host without any of a class borrows it. What it borrows is not its own to run out of.
    return np.where(capacity > 0.0, (free - amount) / np.maximum(capacity, 1.0), 1.0)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """A whole host."""
    return 1.0
