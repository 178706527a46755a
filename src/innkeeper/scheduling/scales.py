"""Defines the fixed scales of resource classes, which make weights of several zones comparable.

Usually the scale of a weigher is the largest capacity of any host in the table. With such scales,
equal hosts in two zones may have different weights. A request with ``has_fixed_scales`` uses the
constants of this module in every zone.

Always true: every fixed scale is a power of two. Division by a power of two is exact, so different
weights stay different.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.columns import HostTable

FIXED_SCALES: Mapping[str, float] = {
    "VCPU": 256.0,
    # 1 TiB
    "MEMORY_MB": 1_048_576.0,
    # 64 TiB
    "DISK_GB": 65_536.0,
}
"""For each resource class, the amount that weighs 1: about the capacity of a large host. All zones
of a tree must agree on these numbers, so a change of them is a change of the protocol between
zones."""
OTHER_SCALE = 1024.0
"""The fixed scale of every other class."""


def fixed(class_name: str) -> float:
    """Return the fixed scale of a resource class."""
    return FIXED_SCALES.get(class_name, OTHER_SCALE)


def scale_of(hosts: HostTable, spec: RequestSpec, class_name: str) -> float:
    """Return the amount of a class that weighs 1: fixed, or the largest capacity of any host."""
    return fixed(class_name) if spec.has_fixed_scales else hosts.greatest(class_name)
