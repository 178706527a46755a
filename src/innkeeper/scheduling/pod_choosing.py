"""Choose a pod for a request: either a bound pod that passes all filters, or else the best pod.

Always true: the result depends only on the table, the request and the policy. Of pods with equal
weights, the oldest pod wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.pods import Pod, PodRequest
from innkeeper.scheduling.pipeline import ALL_ROWS, Weights, masks, scales
from innkeeper.scheduling.pod_filters import PodFilter
from innkeeper.scheduling.pod_weighers import PodWeigher
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.pods import PodTable


@dataclass(frozen=True, slots=True)
class PodPolicy:
    """The filters in force, and the weighers with their multipliers."""

    filters: tuple[PodFilter, ...]
    weighers: tuple[tuple[PodWeigher, float], ...]


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """The result of the policy for one pod.

    ``refused_by`` is the first filter that removed the pod, and ``reason`` says why. ``weights``
    has the pod's weight from each weigher.
    """

    pod: Pod
    refused_by: str | None
    reason: str | None
    weights: Mapping[str, float]

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return sum(self.weights.values())


def choose(policy: PodPolicy, pods: PodTable, request: PodRequest) -> Pod | None:
    """Return the first bound pod that passes all filters, or else the best pod that passes.

    If no pod passes, return ``None``.
    """
    left: Mask = np.ones(pods.row_count, dtype=np.bool_)
    for _, mask in masks(policy.filters, pods, request):
        left &= mask
    for pod_id in request.bound:
        row = pods.row_of(pod_id)
        if row is not None and left[row]:
            return pods.pods[row]
    if not left.any():
        return None
    total = sum(_parts(policy, pods, request).values(), np.zeros(pods.row_count))
    # Of equal weights, the first one wins. Pods are in the order in which they were added.
    return pods.pods[int(np.argmax(np.where(left, total, -np.inf)))]


def explain(policy: PodPolicy, pods: PodTable, request: PodRequest) -> list[PodVerdict]:
    """Return the result of the policy for each pod, in the order in which the pods were added."""
    removed: dict[int, int] = {}
    for place, mask in masks(policy.filters, pods, request):
        for row in np.flatnonzero(~mask):
            removed.setdefault(int(row), place)
    parts = _parts(policy, pods, request)
    return [
        PodVerdict(
            pod,
            policy.filters[removed[row]].NAME if row in removed else None,
            _reason(policy.filters[removed[row]], pods, request, row) if row in removed else None,
            {name: float(column[row]) for name, column in parts.items()},
        )
        for row, pod in enumerate(pods.pods)
    ]


def refusal(verdicts: Sequence[PodVerdict]) -> str:
    """Return the reasons why pods were refused, in one line for administrators."""
    return "; ".join(f"{each.pod.pod_name}: {each.reason}" for each in verdicts if each.reason)


def _parts(policy: PodPolicy, pods: PodTable, request: PodRequest) -> dict[str, Weights]:
    return {
        policy.weighers[place][0].NAME: (
            policy.weighers[place][0].column(pods, request, ALL_ROWS) * factor
        )
        for place, factor, _ in scales(policy.weighers, pods, request)
    }


def _reason(each: PodFilter, pods: PodTable, request: PodRequest, row: int) -> str:
    lacks = getattr(each, "lacks", None)
    told = each.REASON if lacks is None else lacks(pods, request, row)
    # An operator's own filter may return several texts, as filters of hosts do.
    return told if isinstance(told, str) else "; ".join(told)
