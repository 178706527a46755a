"""Pack servers into few hosts, with little stranded capacity.

The class with the smallest free share limits what a host can still take. The weight is the negated
sum of two terms: the decrease of the smallest free share, and the product of all free shares after
placement. The first term avoids hosts where the server uses up the scarce class. The second term
prefers nearly full hosts.
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
    """Return the weight of each host, as defined at the beginning of this module."""
    names = [name for name in CLASSES if name in hosts.free and spec.amounts.get(name, 0)]
    if not names:
        return np.zeros(hosts.host_count)[rows]
    before = [_share(hosts, name, 0, rows) for name in names]
    after = [_share(hosts, name, spec.amounts[name], rows) for name in names]
    lost = reduce(np.minimum, before) - reduce(np.minimum, after)
    return -(lost + reduce(np.multiply, after))


def _share(hosts: HostTable, name: str, amount: int, rows: Rows) -> Weights:
    """Return the free share of a class after ``amount`` is taken: 1 for empty, 0 for full."""
    free = hosts.free[name][rows]
    capacity = free + hosts.used[name][rows]
    # A host without capacity for a class borrows the class, so the class does not limit the host.
    return np.where(capacity > 0.0, (free - amount) / np.maximum(capacity, 1.0), 1.0)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return 1, the free share of an empty host."""
    return 1.0
