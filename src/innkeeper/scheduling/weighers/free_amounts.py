"""Prefer hosts with more free capacity of one class, to spread servers.

A negative multiplier packs servers instead.
"""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.scheduling.scales import scale_of
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable


class FreeAmountWeigher:
    """Weighs hosts by the free amount of one resource class on the host or in its pools."""

    READS: Reads = ("has_fixed_scales",)

    def __init__(self, name: str, aggregate_key: str, class_name: str) -> None:
        self.NAME, self.AGGREGATE_KEY = name, aggregate_key
        self._class_name = class_name

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        """Return the free amount for each host, in units of the class."""
        if self._class_name not in hosts.free:
            return np.zeros(hosts.host_count)[rows]
        return hosts.left(self._class_name, rows)

    def number(self, hosts: HostTable, spec: RequestSpec, index: HostIndex) -> float:
        """Return the value of :meth:`column` for one host."""
        if self._class_name in hosts.free and not hosts.pools.row_count:
            return float(hosts.free[self._class_name][index])
        return float(self.column(hosts, spec, slice(index, index + 1))[0])

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """Return the largest capacity of the class on one host or pool, or the fixed scale."""
        return scale_of(hosts, spec, self._class_name)


FREE_MEMORY = FreeAmountWeigher("FreeMemoryWeigher", "ram_weight_multiplier", "MEMORY_MB")
FREE_VCPUS = FreeAmountWeigher("FreeVcpusWeigher", "cpu_weight_multiplier", "VCPU")
FREE_DISK = FreeAmountWeigher("FreeDiskWeigher", "disk_weight_multiplier", "DISK_GB")
