"""What the filters say together that keep hosts for somebody: pclouds' and leases'.

They are always in force, and nobody is told by numbers what they removed.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.filters import lease, pcloud
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAMES = frozenset({pcloud.NAME, lease.NAME})


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """True on hosts that are not kept for others: one filter always has something to say."""
    said = (each.mask(hosts, spec, rows) for each in (pcloud, lease))
    found: Mask = reduce(np.logical_and, (mine for mine in said if mine is not None))
    return found
