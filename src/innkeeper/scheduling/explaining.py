"""Why servers go where they go: an explanation of one decision, made only when it is asked for.

Always true: the table is afterwards as it was; what is told is a function of table, spec, seed
and plan.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from innkeeper.domain.explaining import Chosen, Deciders, Explanation, HostAnswer, Ranked, Refused
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling import depletion, refusals
from innkeeper.scheduling.facts import masks
from innkeeper.scheduling.pipeline import ALL_ROWS, Pipeline, Weights, parts, weigh
from innkeeper.scheduling.refusals import Refusals
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.columns import HostTable

BEST_SHOWN = 10
"""Candidates that an explanation names."""
NEAREST_SHOWN = 5
"""Near misses that an explanation names."""


def deciders(scheduler: Scheduler, subset_size: int, seed: int) -> Deciders:
    """Who decides: what the driver itself goes by, which need not be all that it was given."""
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
    made: BuildPlan,
    deciders: Deciders,
    asked: HostIndex | None = None,
) -> Explanation:
    """Explain a plan, whose amounts are back on the table.

    ``asked`` is the row of a host about which somebody wants to know why not that one.
    """
    found = refusals.look(pipeline.filters, hosts, spec)
    weights = _weights(pipeline, hosts, spec, found)
    chosen, then = _replayed(pipeline, hosts, spec, made)
    return Explanation(
        hosts=hosts.host_count,
        candidates=int(np.count_nonzero(found.counts == 0)),
        wanted=spec.count,
        placed=len(made.entries),
        deciders=deciders,
        tallies=refusals.tallies(found, hosts, spec),
        nearest=refusals.nearest(found, hosts, spec, NEAREST_SHOWN),
        best=best(pipeline, hosts, spec, weights, BEST_SHOWN),
        chosen=chosen,
        then=then,
        host=None if asked is None else _answer(pipeline, hosts, spec, weights, asked),
        has_dedicated=masks.has_dedicated(hosts),
    )


def refused(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, made: BuildPlan) -> Refused:
    """Why the first server without a place has none; the plan's amounts are on the table."""
    now = spec
    known = {each.filter_name: each for each in made.removals}
    with ExitStack() as undoing:
        for entry in made.entries:
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            now = _with_member(now, entry.host)
        found = refusals.look(pipeline.filters, hosts, now)
        return Refused(
            refusals.tallies(found, hosts, now, known),
            refusals.nearest(found, hosts, now, NEAREST_SHOWN),
        )


def _refused(found: Refusals, hosts: HostTable, spec: RequestSpec) -> Refused:
    return Refused(
        refusals.tallies(found, hosts, spec), refusals.nearest(found, hosts, spec, NEAREST_SHOWN)
    )


def before(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, made: BuildPlan
) -> tuple[Refused, tuple[Ranked, ...]]:
    """Who was refused and who was best before a plan, whose amounts are off the table now."""
    with depletion.Aside(hosts, spec, made.entries):
        found = refusals.look(pipeline.filters, hosts, spec)
        weights = _weights(pipeline, hosts, spec, found)
        return (_refused(found, hosts, spec), best(pipeline, hosts, spec, weights, BEST_SHOWN))


def _weights(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, found: Refusals) -> Weights:
    """The weights of all hosts; of those that are refused, less than any."""
    given = weigh(pipeline.weighers, hosts, spec, ALL_ROWS)
    if given is None:
        given = np.zeros(hosts.host_count)
    return np.where(found.counts == 0, given, -np.inf)


def best(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, weights: Weights, most: int
) -> tuple[Ranked, ...]:
    """The hosts of greatest weight, with each weigher's part; equals in the order of rows."""
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
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, weights: Weights, asked: HostIndex
) -> HostAnswer:
    verdicts = refusals.verdicts(pipeline.filters, hosts, spec, asked)
    if any(each.objection is not None for each in verdicts):
        return HostAnswer(hosts.names[asked], verdicts)
    return HostAnswer(
        hosts.names[asked],
        verdicts,
        rank=1 + int(np.count_nonzero(weights > weights[asked])),
        weight=float(weights[asked]),
        parts=parts(pipeline, hosts, spec, asked),
    )


def _replayed(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, made: BuildPlan
) -> tuple[tuple[Chosen, ...], Refused | None]:
    """The places of a plan with their parts, and why the first server without one has none."""
    chosen: list[Chosen] = []
    now = spec
    with ExitStack() as undoing:
        for entry in made.entries:
            chosen.append(_chosen(pipeline, hosts, now, entry))
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            now = _with_member(now, entry.host)
        is_short = 0 < len(made.entries) < spec.count
        if not is_short:
            return tuple(chosen), None
        found = refusals.look(pipeline.filters, hosts, now)
        return tuple(chosen), _refused(found, hosts, now)


def _with_member(spec: RequestSpec, host: str) -> RequestSpec:
    """The request for the next server, whose group has one more member."""
    group = spec.group
    if group is None:
        return spec
    members = {**group.members, host: group.members.get(host, 0) + 1}
    return replace(spec, group=replace(group, members=members))


def _chosen(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, entry: Entry) -> Chosen:
    return Chosen(
        entry.host,
        entry.weight,
        parts(pipeline, hosts, spec, entry.index),
        {each.class_name: hosts.pools.uuids[each.index] for each in entry.loans},
        entry.alternates,
    )
