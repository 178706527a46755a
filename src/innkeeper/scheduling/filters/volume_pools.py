"""Keep only hosts that can reach the pools of the server's volumes.

A host can reach a shared pool if the pool serves the host. Every host can reach the disks of all
other hosts, because these disks are exported.
"""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "VolumePoolFilter"
REASON = "the host cannot reach the pool of a volume of the server"
READS: Reads = ("volume_pools",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where a host can reach all pools of the volumes.

    Every host can reach the disks of hosts, so only shared pools are checked. Return None if no
    volume is in a shared pool.
    """
    shared = _shared(hosts, spec)
    if not shared:
        return None
    if not hosts.pools.row_count:
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    reached: Mask = hosts.pools.served_by_all(shared)[hosts.membership_codes[rows]]
    return reached


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State the number of pools that the host must reach."""
    return f"{len(_shared(hosts, spec))} shared pools have volumes of the server"


def _shared(hosts: HostTable, spec: RequestSpec) -> set[ProviderId]:
    # A set difference would take time for every host.
    return {each for each in spec.volume_pools if each not in hosts.index_of}
