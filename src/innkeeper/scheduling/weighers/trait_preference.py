"""Prefer hosts with more of the traits that the flavor and the image prefer."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "TraitPreferenceWeigher"
READS: Reads = ("preferred_traits",)
AGGREGATE_KEY = "trait_preference_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the number of preferred traits that each host has."""
    there = spec.preferred_traits & hosts.traits.keys()
    columns = [hosts.traits[name][rows] for name in there]
    nothing: Weights = np.zeros(hosts.host_count)[rows]
    return np.sum(columns, axis=0, dtype=np.float64) if columns else nothing


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return the number of preferred traits in the request."""
    return float(len(spec.preferred_traits))
