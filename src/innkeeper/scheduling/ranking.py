"""The best candidates of a request, with what each weigher gave to them."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import Candidate, RequestSpec
from innkeeper.scheduling.pipeline import Pipeline, parts, select, weigh
from innkeeper.snapshot.amounts import Indexes
from innkeeper.snapshot.columns import HostTable


def best(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, most: int) -> list[Candidate]:
    """The best candidates for one server; takes nothing."""
    left, _ = select(pipeline, hosts, spec)
    candidates: Indexes = np.flatnonzero(left)
    if not candidates.shape[0]:
        return []
    ordered = (*pipeline.steady_weighers, *pipeline.rare_weighers)
    weights = weigh(ordered, hosts, spec, candidates)
    if weights is None:
        weights = np.zeros(candidates.shape[0])
    order = np.argsort(-weights, kind="stable")[:most]
    return [
        Candidate(hosts.names[index], float(weights[at]), parts(pipeline, hosts, spec, index))
        for at, index in ((int(each), int(candidates[each])) for each in order)
    ]
