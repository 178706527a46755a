"""The filters of pods.

Each filter returns a mask over all pods, and describes what is missing. For administrators,
``lacks`` describes what one pod lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from innkeeper.domain.pods import GENERAL, KINDS, PodRequest
from innkeeper.scheduling.pipeline import TableFilter
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.pods import PodTable

PodFilter = TableFilter[PodTable, PodRequest]


class AllPods:
    """Accepts every pod."""

    NAME = "AllPodsFilter"
    REASON = "never"
    READS: Reads = ()

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        return None

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return "nothing"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return "nothing"


class InZone:
    """Accepts the pods in the availability zone of the request."""

    NAME = "AvailabilityZoneFilter"
    REASON = "in another availability zone"
    READS: Reads = ("az_name",)

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        if request.az_name is None:
            return None
        found: Mask = (pods.az_names == request.az_name)[rows].astype(np.bool_)
        return found

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return f"the availability zone {request.az_name}"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return f"in the availability zone {pods.az_names[row]}, not {request.az_name}"


class ResourceAffinity:
    """Accepts the pods whose affinity tags equal those of the request.

    A request without tags may only use pods without tags.
    """

    NAME = "ResourceAffinityFilter"
    REASON = "for other work"
    READS: Reads = ("group",)

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        found: Mask = (pods.groups == request.group)[rows].astype(np.bool_)
        return found

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return f"a pod of the group {request.group}"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        if pods.groups[row] == GENERAL:
            return f"a pod for general work, not {request.group}"
        return f"a pod for {pods.groups[row]}, not {request.group}"


class BelowLimits:
    """Accepts the pods whose usage stays below the threshold and leaves the headroom.

    This must be true for each kind of amounts. A pod that was never measured is accepted.
    """

    NAME = "CapacityFilter"
    REASON = "full"
    READS: Reads = ("amounts",)

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        fits: Mask = np.ones(pods.row_count, dtype=np.bool_)
        for kind in KINDS:
            fits &= ~self._is_full(pods, request, kind)
        return fits[rows]

    def _is_full(self, pods: PodTable, request: PodRequest, kind: str) -> Mask:
        asked = request.amounts.get(kind, 0.0)
        used, most = pods.used[kind], pods.limits[kind]
        full: Mask = (pods.capacities[kind] > 0) & (used >= most)
        if asked > 0:
            full |= used + asked > most
        return full

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return (
            ", ".join(
                f"{request.amounts[kind]:g} {kind}" for kind in KINDS if request.amounts.get(kind)
            )
            or "a pod below its threshold"
        )

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return "; ".join(
            f"{kind}: {pods.used[kind][row]:g} used and {request.amounts.get(kind, 0.0):g} wanted "
            f"of {pods.limits[kind][row]:g}"
            for kind in KINDS
            if self._is_full(pods, request, kind)[row]
        )


class NotInMaintenance:
    """Accepts the pods that are not in maintenance."""

    NAME = "MaintenanceFilter"
    REASON = "in maintenance"
    READS: Reads = ()

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        found: Mask = ~pods.is_in_maintenance[rows]
        return found

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return "a pod that is not in maintenance"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return "in maintenance"


class Answering:
    """Accepts the pods that answer, and all pods to which the project is bound.

    A bound pod is accepted even if it does not answer, so that an outage does not move bindings.
    """

    NAME = "PodStateFilter"
    REASON = "down"
    READS: Reads = ("bound",)

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        if not pods.is_down.any():
            return None
        found: Mask = (~pods.is_down | np.isin(pods.ids, request.bound))[rows]
        return found

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return "a pod that answers"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return f"down: {pods.pods[row].health.last_error or 'it does not answer'}"


class NotRefused:
    """Accepts the pods that did not refuse this request before."""

    NAME = "RefusedPodsFilter"
    REASON = "refused the request"
    READS: Reads = ("refused",)

    def mask(self, pods: PodTable, request: PodRequest, rows: Rows) -> Mask | None:
        if not request.refused:
            return None
        found: Mask = ~np.isin(pods.ids[rows], sorted(request.refused))
        return found

    def missing(self, pods: PodTable, request: PodRequest) -> str:
        return "a pod that accepts the request"

    def lacks(self, pods: PodTable, request: PodRequest, row: int) -> str:
        return "it refused this request"


ALWAYS = (
    "RefusedPodsFilter",
    "AvailabilityZoneFilter",
    "ResourceAffinityFilter",
    "MaintenanceFilter",
    "PodStateFilter",
    "CapacityFilter",
)
"""The filters that are always in force, in this order, even if the settings do not name them."""
POD_FILTERS: Mapping[str, PodFilter] = {
    each.NAME: each
    for each in (
        AllPods(),
        InZone(),
        ResourceAffinity(),
        BelowLimits(),
        NotInMaintenance(),
        Answering(),
        NotRefused(),
    )
}
