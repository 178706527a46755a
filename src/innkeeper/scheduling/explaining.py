"""Explains scheduling decisions. Explanations are computed on request only.

Always true: explaining does not change the host table. An explanation depends only on the table,
the spec, the seed and the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

import msgspec
import numpy as np

from innkeeper.domain.explaining import Chosen, Deciders, Explanation, HostAnswer, Ranked, Refused
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import BuildPlan, Removal, RequestSpec
from innkeeper.scheduling import depletion, refusals
from innkeeper.scheduling.facts import masks
from innkeeper.scheduling.pipeline import ALL_ROWS, Pipeline, Weights, parts, weigh
from innkeeper.scheduling.refusals import Refusals
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.columns import HostTable

BEST_SHOWN = 10
"""The maximum number of candidates in an explanation."""
NEAREST_SHOWN = 5
"""The maximum number of near misses in an explanation."""


def deciders(scheduler: Scheduler, subset_size: int, seed: int) -> Deciders:
    """Describe what made a decision: the driver, its filters and weighers, and the seed."""
    pipeline = scheduler.pipeline
    return Deciders(
        scheduler.NAME,
        tuple(each.NAME for each in pipeline.filters),
        tuple((each.NAME, multiplier) for each, multiplier in pipeline.weighers),
        subset_size,
        seed,
    )


def explain(
    pipeline: Pipeline,
    hosts: HostTable,
    spec: RequestSpec,
    plan: BuildPlan,
    deciders: Deciders,
    host: HostIndex | None = None,
) -> Explanation:
    """Explain a plan. The plan's amounts must have been given back to the table.

    With ``host``, the explanation also has the verdict of every filter on this host.
    """
    found = refusals.look(pipeline.filters, hosts, spec)
    weights = _weights(pipeline, hosts, spec, found)
    chosen, then = _replayed(pipeline, hosts, spec, plan)
    return Explanation(
        hosts=hosts.host_count,
        candidates=int(np.count_nonzero(found.counts == 0)),
        wanted=spec.count,
        placed=len(plan.entries),
        deciders=deciders,
        tallies=refusals.tallies(found, hosts, spec),
        nearest=refusals.nearest(found, hosts, spec, NEAREST_SHOWN),
        best=best(pipeline, hosts, spec, weights, BEST_SHOWN),
        chosen=chosen,
        then=then,
        host=None if host is None else _answer(pipeline, hosts, spec, weights, host),
        has_dedicated=masks.has_dedicated(hosts),
    )


def refused(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, plan: BuildPlan) -> Refused:
    """Explain why there is no host for the first server that the plan does not place.

    The plan's amounts must have been given back to the table.
    """
    current = spec
    known = {each.filter_name: each for each in plan.removals}
    with ExitStack() as undoing:
        for entry in plan.entries:
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            current = _with_member(current, entry.host)
        return _refused(refusals.look(pipeline.filters, hosts, current), hosts, current, known)


def _refused(
    found: Refusals, hosts: HostTable, spec: RequestSpec, known: Mapping[str, Removal] | None = None
) -> Refused:
    return Refused(
        refusals.tallies(found, hosts, spec, known),
        refusals.nearest(found, hosts, spec, NEAREST_SHOWN),
    )


def before(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, plan: BuildPlan
) -> tuple[Refused, tuple[Ranked, ...]]:
    """Return the rejected and the best hosts, as they were before the plan took its amounts."""
    with depletion.Aside(hosts, spec, plan.entries):
        found = refusals.look(pipeline.filters, hosts, spec)
        weights = _weights(pipeline, hosts, spec, found)
        return (_refused(found, hosts, spec), best(pipeline, hosts, spec, weights, BEST_SHOWN))


def _weights(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, found: Refusals) -> Weights:
    """Return the weight of each host; -inf if a filter rejects the host."""
    given = weigh(pipeline.weighers, hosts, spec, ALL_ROWS)
    if given is None:
        given = np.zeros(hosts.host_count)
    return np.where(found.counts == 0, given, -np.inf)


def best(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, weights: Weights, most: int
) -> tuple[Ranked, ...]:
    """Return up to ``most`` hosts, by descending weight. Equal weights are in the order of rows."""
    size = min(most, int(np.count_nonzero(weights > -np.inf)))
    if size < 1:
        return ()
    least = np.partition(weights, -size)[-size]
    near = np.flatnonzero(weights >= least)
    order = near[np.argsort(-weights[near], kind="stable")[:size]]
    return tuple(
        Ranked(hosts.names[index], float(weights[index]), parts(pipeline, hosts, spec, int(index)))
        for index in order
    )


def _answer(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, weights: Weights, host: HostIndex
) -> HostAnswer:
    verdicts = refusals.verdicts(pipeline.filters, hosts, spec, host)
    if any(each.objection is not None for each in verdicts):
        return HostAnswer(hosts.names[host], verdicts)
    return HostAnswer(
        hosts.names[host],
        verdicts,
        rank=1 + int(np.count_nonzero(weights > weights[host])),
        weight=float(weights[host]),
        parts=parts(pipeline, hosts, spec, host),
    )


def _replayed(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, plan: BuildPlan
) -> tuple[tuple[Chosen, ...], Refused | None]:
    """Return the chosen hosts of a plan, and the reasons why the first unplaced server has no host.

    If the plan places all servers, or no server, ``None`` is returned instead of reasons.
    """
    chosen: list[Chosen] = []
    current = spec
    with ExitStack() as undoing:
        for entry in plan.entries:
            chosen.append(
                Chosen(
                    entry.host,
                    entry.weight,
                    parts(pipeline, hosts, current, entry.index),
                    {each.class_name: hosts.pools.uuids[each.index] for each in entry.loans},
                    entry.alternates,
                )
            )
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            current = _with_member(current, entry.host)
        if not 0 < len(plan.entries) < spec.count:
            return tuple(chosen), None
        found = refusals.look(pipeline.filters, hosts, current)
        return tuple(chosen), _refused(found, hosts, current)


def _with_member(spec: RequestSpec, host: str) -> RequestSpec:
    """Return the request for the next server, with one more group member on ``host``."""
    group = spec.group
    if group is None:
        return spec
    members = {**group.members, host: group.members.get(host, 0) + 1}
    return msgspec.structs.replace(spec, group=replace(group, members=members))
