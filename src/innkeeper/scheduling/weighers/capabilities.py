"""Prefer hosts by reported numeric capabilities, each with its own multiplier.

Capabilities that are missing, expired or not numeric weigh nothing.
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
"""The maximum absolute value of reported numbers. Larger numbers are clipped, so that sums stay
finite."""


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """For each host, return the sum of all configured capabilities times their multipliers."""
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
    """Return 1 if any capability has a multiplier, else 0."""
    return 1.0 if spec.rules.capability_multipliers else 0.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    return freshness.stamp(hosts, spec) if spec.rules.capability_multipliers else None
