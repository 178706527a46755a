"""Prefer hosts with more (or fewer) members of a server group with a soft policy."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import GroupPolicy, RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable


class SoftAffinityWeigher:
    """Weighs hosts by the number of group members, if the group has the given policy."""

    READS: Reads = ("group",)
    HINTS = ("group",)

    def __init__(self, name: str, aggregate_key: str, policy: str, sign: int) -> None:
        self.NAME, self.AGGREGATE_KEY = name, aggregate_key
        self._policy, self._sign = policy, sign

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        """Return the number of members on each host, negated for anti-affinity."""
        counts: Weights = np.zeros(hosts.host_count)
        members = {} if spec.group is None else spec.group.members
        there = [name for name in members if name in hosts.index_by_name]
        counts[hosts.rows_named(there)] = [self._sign * members[name] for name in there]
        return counts[rows]

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """Return 1 for a group of any size, because a pick must not change the scale."""
        return 1.0 if spec.group is not None and spec.group.policy == self._policy else 0.0


SOFT_AFFINITY = SoftAffinityWeigher(
    "SoftAffinityWeigher", "soft_affinity_weight_multiplier", GroupPolicy.SOFT_AFFINITY, 1
)
SOFT_ANTI_AFFINITY = SoftAffinityWeigher(
    "SoftAntiAffinityWeigher",
    "soft_anti_affinity_weight_multiplier",
    GroupPolicy.SOFT_ANTI_AFFINITY,
    -1,
)
