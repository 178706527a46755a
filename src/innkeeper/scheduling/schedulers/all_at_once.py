"""All servers of a request are placed together, each pick depleting its host and its pools.

Source: the seed *Distributed Scheduler*, "Costs & Weights": consumed resources are virtually
depleted, so that the weights can change accordingly.

Always true: the plan is a function of table, spec and seed; the table afterwards differs from
before in exactly what the plan's entries take, which :func:`undo` gives back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from innkeeper.domain.ids import Generation, HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Candidate, Entry, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.pipeline import (
    Indexes,
    Pipeline,
    Scale,
    Weights,
    removals,
    select,
    still_fits,
)
from innkeeper.snapshot.columns import HostTable

TAKEN = -np.inf


def plan(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, subset_size: int = 1
) -> BuildPlan:
    """Choose a host for each of ``spec.count`` servers, as long as there are any.

    Hosts of equal weight are equally likely, always. With ``subset_size`` above 1 so are that
    many of the best, which keeps several deciders apart. The chosen amounts are off the table
    when this returns: claim them, or :func:`undo`.
    """
    left, taken = select(pipeline, hosts, spec)
    candidates: Indexes = np.flatnonzero(left)
    entries: list[Entry] = []
    seen: dict[ProviderId, Generation] = {}
    with ExitStack() as undoing:
        # If anything fails on the way, what was taken goes back: nobody else knows of it.
        for entry in _picks(pipeline, hosts, spec, candidates, subset_size):
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            entries.append(entry)
            seen[entry.provider_id] = hosts.generation(entry.index)
            for each in entry.loans:
                seen[each.provider_id] = hosts.pools.generation(each.index)
        is_short = len(entries) < spec.count
        told = removals(taken, hosts, spec, is_wanted_whole=is_short)
        undoing.pop_all()
    return BuildPlan(tuple(entries), seen, hosts.host_count, int(candidates.shape[0]), told)


def _picks(
    pipeline: Pipeline,
    hosts: HostTable,
    spec: RequestSpec,
    candidates: Indexes,
    subset_size: int,
) -> Iterator[Entry]:
    """The places of the servers, one after the other; each is depleted before the next."""
    if not candidates.shape[0]:
        return
    scale = Scale(pipeline, hosts, spec, candidates)
    weights = scale.weights
    for turn in range(spec.count):
        best = _pick(weights, draw_from=subset_size, seed=spec.seed, turn=turn)
        if weights[best] == TAKEN:
            return
        index = HostIndex(int(candidates[best]))
        loans = depletion.loans(hosts, spec, index, turn)
        provider_id = ProviderId(int(hosts.provider_ids[index]))
        yield Entry(index, provider_id, hosts.names[index], float(weights[best]), loans)
        if turn + 1 == spec.count:
            return
        if not loans:
            # Only the picked host has changed; nobody else is asked again.
            fits = still_fits(pipeline.filters, hosts, spec, index)
            weights[best] = scale.again(index) if fits else TAKEN
        else:
            # All hosts that its pools serve have changed with it.
            gone = weights == TAKEN
            if depletion.is_drained(hosts, loans):
                left, _ = select(pipeline, hosts, spec)
                gone = ~left[candidates]
            elif not still_fits(pipeline.filters, hosts, spec, index):
                gone[best] = True
            weights[:] = np.where(gone, TAKEN, scale.all_again())


def _pick(weights: Weights, draw_from: int, seed: int, turn: int) -> int:
    """Draw one of the ``draw_from`` best; who ties for the last place among them shares it."""
    least = weights.max()
    size = 1
    if draw_from > 1:
        size = min(draw_from, int(np.count_nonzero(weights > TAKEN)))
        if size > 1:
            least = np.partition(weights, -size)[-size]
            better = np.flatnonzero(weights > least)
            place = draw(seed, 2 * turn + 1, size)
            if place < better.shape[0]:
                return int(better[place])
    ties = np.flatnonzero(weights == least)
    return int(ties[draw(seed, 2 * turn, int(ties.shape[0]))])


def undo(hosts: HostTable, spec: RequestSpec, made: BuildPlan) -> None:
    """Put back what a plan took off the table."""
    for entry in made.entries:
        depletion.give_back(hosts, spec, entry)


def rank(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, most: int) -> list[Candidate]:
    """The best candidates for one server, with each weigher's part; takes nothing."""
    left, _ = select(pipeline, hosts, spec)
    candidates: Indexes = np.flatnonzero(left)
    if not candidates.shape[0]:
        return []
    scale = Scale(pipeline, hosts, spec, candidates)
    order = np.argsort(-scale.weights, kind="stable")[:most]
    return [
        Candidate(
            hosts.names[index],
            float(scale.weights[position]),
            scale.parts(index),
        )
        for position, index in ((int(p), int(candidates[p])) for p in order)
    ]
