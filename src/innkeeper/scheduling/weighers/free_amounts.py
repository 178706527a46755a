"""Prefer hosts with more left of one class; a negative multiplier packs instead of spreading."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable


class FreeAmountWeigher:
    """Weighs hosts by what they, or their pools, have left of one resource class."""

    READS: Reads = ()

    def __init__(self, name: str, aggregate_key: str, class_name: str) -> None:
        self.NAME, self.AGGREGATE_KEY = name, aggregate_key
        self._class_name = class_name

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        """Return the amount that is left, in units of the class."""
        if self._class_name not in hosts.free:
            return np.zeros(hosts.host_count)[rows]
        return hosts.left(self._class_name, rows)

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """Return the largest capacity of one host or pool."""
        return hosts.greatest(self._class_name)


FREE_MEMORY = FreeAmountWeigher("FreeMemoryWeigher", "ram_weight_multiplier", "MEMORY_MB")
FREE_VCPUS = FreeAmountWeigher("FreeVcpusWeigher", "cpu_weight_multiplier", "VCPU")
FREE_DISK = FreeAmountWeigher("FreeDiskWeigher", "disk_weight_multiplier", "DISK_GB")
