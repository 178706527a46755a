"""The weighers of pods. Each weigher returns one number per pod, and the highest weight wins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from innkeeper.domain.pods import KINDS, PodRequest
from innkeeper.scheduling.pipeline import TableWeigher, Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.pods import PodTable

PodWeigher = TableWeigher[PodTable, PodRequest]


class CreationTime:
    """Prefers pods that were added earlier, so that pods are filled one after the other."""

    NAME = "creation_time"
    READS: Reads = ()

    def column(self, pods: PodTable, request: PodRequest, rows: Rows) -> Weights:
        return pods.ages[rows]

    def scale(self, pods: PodTable, request: PodRequest) -> float:
        return float(pods.row_count)


class IdleCapacity:
    """Prefers pods with the largest free fraction of their scarcest kind of amounts.

    A pod that was never measured counts as empty.
    """

    NAME = "idle_capacity"
    READS: Reads = ()

    def column(self, pods: PodTable, request: PodRequest, rows: Rows) -> Weights:
        least: Weights = np.ones(pods.row_count, dtype=np.float64)
        for kind in KINDS:
            whole = pods.capacities[kind]
            is_known = np.isfinite(whole) & (whole > 0)
            free = np.ones(pods.row_count, dtype=np.float64)
            np.divide(whole - pods.used[kind], whole, out=free, where=is_known)
            least = np.minimum(least, free)
        return least[rows]

    def scale(self, pods: PodTable, request: PodRequest) -> float:
        return 1.0


class LowPrice:
    """Prefers cheaper pods."""

    NAME = "cost"
    READS: Reads = ()

    def column(self, pods: PodTable, request: PodRequest, rows: Rows) -> Weights:
        return -pods.prices[rows]

    def scale(self, pods: PodTable, request: PodRequest) -> float:
        return float(np.max(np.abs(pods.prices), initial=0.0))


class OwnWeight:
    """Prefers pods to which the operator gave a higher weight."""

    NAME = "weight"
    READS: Reads = ()

    def column(self, pods: PodTable, request: PodRequest, rows: Rows) -> Weights:
        return pods.weights[rows]

    def scale(self, pods: PodTable, request: PodRequest) -> float:
        return float(np.max(np.abs(pods.weights), initial=0.0))


USUAL_MULTIPLIERS: Mapping[str, float] = {"weight": 1000.0}
"""The default multipliers of weighers that are not 1. Settings override them. An operator's weight
for a pod must count more than the age of the pod."""
POD_WEIGHERS: Mapping[str, PodWeigher] = {
    each.NAME: each for each in (CreationTime(), IdleCapacity(), LowPrice(), OwnWeight())
}
