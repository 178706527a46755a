"""Prefer hosts with fewer servers of the same project, to limit the effect of a host failure."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ProjectSpreadWeigher"
READS: Reads = ("project_id",)
AGGREGATE_KEY = "project_spread_weight_multiplier"
NEEDS_SERVERS = True


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """Return the negated number of the project's servers on each host."""
    counted: Weights = np.zeros(hosts.host_count)
    there, counts = hosts.servers_of(spec.project_id)
    counted[there] = -counts
    return counted[rows]


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return 1, because one server weighs 1."""
    return 1.0
