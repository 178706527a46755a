"""Prefer hosts by the numbers that their agents report: so much for each unit.

What a host has not reported, not lately, or not as a number, weighs nothing.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "CapabilityWeigher"
READS: Reads = ("rules",)
AGGREGATE_KEY = "metrics_weight_multiplier"

MOST = 1e15
"""Numbers beyond it, either way, count as it: a sum must stay finite whatever agents say."""


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """The sum of all capabilities that weigh, each times its own multiplier."""
    pairs = spec.rules.capability_multipliers
    given = [_numbers(hosts, name, rows) * multiplier for name, multiplier in pairs]
    if not given:
        return np.zeros(hosts.host_count)[rows]
    total: Weights = reduce(np.add, given)
    fresh = freshness.fresh(hosts, spec, rows)
    return total if fresh is None else np.where(fresh, total, 0.0)


def _numbers(hosts: HostTable, name: str, rows: Rows) -> Weights:
    found: Weights = hosts.capability(name).numbers[rows]
    return np.clip(np.nan_to_num(found, nan=0.0), -MOST, MOST)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """One unit times its multiplier; without any there is nothing to weigh."""
    return 1.0 if spec.rules.capability_multipliers else 0.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which hosts' capabilities are known, if any weigh."""
    return freshness.stamp(hosts, spec) if spec.rules.capability_multipliers else None
