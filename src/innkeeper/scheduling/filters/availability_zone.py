"""Keep only hosts of the requested availability zone."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "AvailabilityZoneFilter"
REASON = "the host is in another availability zone"
READS: Reads = ("availability_zone",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True on hosts in the requested zone, or None if the request names no zone."""
    if spec.availability_zone is None:
        return None
    code = hosts.zones.get(spec.availability_zone)
    if code is None:
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    here: Mask = hosts.zone_codes[rows] == code
    return here


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Name the requested zone, and the zones that have hosts."""
    there = ", ".join(hosts.zones_there()) or "none"
    return f"zone {spec.availability_zone!r} requested; zones with hosts: {there}"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Name the zone of the host."""
    code = int(hosts.zone_codes[index])
    # The code of a zone is its index in ``zones``.
    mine = list(hosts.zones)[code : code + 1]
    return [f"it is in zone {zone!r}" for zone in mine]
