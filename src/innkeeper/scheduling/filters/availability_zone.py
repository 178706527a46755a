"""Only hosts of the requested availability zone."""

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
    """Return True in the requested zone; None if the request names none."""
    if spec.availability_zone is None:
        return None
    code = hosts.zones.get(spec.availability_zone)
    if code is None:
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    here: Mask = hosts.zone_codes[rows] == code
    return here


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe the requested zone, and the existing zones."""
    there = ", ".join(hosts.zones_there()) or "none"
    return f"zone {spec.availability_zone!r} requested; there are: {there}"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Describe the zone of the host."""
    code = int(hosts.zone_codes[index])
    # Zones are in the order of their codes.
    mine = list(hosts.zones)[code : code + 1]
    return [f"it is in {zone!r}" for zone in mine]
