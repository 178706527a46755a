"""Prefer hosts with fewer members of the server group, where it would rather be apart."""

from __future__ import annotations

from innkeeper.domain.placing import GroupPolicy, RequestSpec
from innkeeper.scheduling.facts import members
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "SoftAntiAffinityWeigher"
READS: Reads = ("group",)
HINTS = ("group",)
AGGREGATE_KEY = "soft_anti_affinity_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """How many members there are, as a negative number."""
    return -members.counts(hosts, spec.group, rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """One member; without such a group there is nothing to weigh."""
    return members.scale(spec.group, GroupPolicy.SOFT_ANTI_AFFINITY)
