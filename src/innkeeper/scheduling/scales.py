"""Define the fixed scales of resource classes, which make weights of several zones comparable.

Usually, the scale of a weigher is the largest capacity of any host in the table. Equal hosts in two
zones may then have different weights. A request with ``has_fixed_scales`` uses the constants of
this module in every zone instead.

Always true: every fixed scale is a power of two. Division by a power of two is exact, so that
different amounts keep different weights.
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
"""The amount that weighs 1, by resource class. This is about the capacity of a large host. All
zones of a tree must use the same numbers. A change of these numbers is therefore a change of the
protocol between zones."""
OTHER_SCALE = 1024.0
"""The fixed scale of every other class."""


def fixed(class_name: str) -> float:
    """Return the fixed scale of a resource class."""
    return FIXED_SCALES.get(class_name, OTHER_SCALE)


def scale_of(hosts: HostTable, spec: RequestSpec, class_name: str) -> float:
    """Return the amount of a class that weighs 1.

    This is the fixed scale, or else the largest capacity of any host.
    """
    return fixed(class_name) if spec.has_fixed_scales else hosts.greatest(class_name)
