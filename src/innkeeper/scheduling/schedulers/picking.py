"""All servers of a request are placed together, each pick depleting its host and its pools.

Source: the seed *Distributed Scheduler*, "Costs & Weights": consumed resources are virtually
depleted, so that the weights can change accordingly.

Always true: the plan is a function of table, spec and seed; the table afterwards differs from
before in exactly what the plan's entries take, which :func:`depletion.undo` gives back. What a
pick changed is all that is judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from innkeeper.domain.ids import Generation, HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.field import Field
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import Weights, removals
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.amounts import Indexes
from innkeeper.snapshot.columns import HostTable

Lean = Callable[[HostTable, RequestSpec, Sequence[Entry]], Weights | None]
"""What to add to the weights before a pick, given the picks before it."""
NOBODY: Indexes = np.zeros(0, dtype=np.intp)
ALTERNATE_TURNS = 2**40
"""Where the turns of draws among alternates begin: behind all others of a request."""
FEW = 8
"""So many of the heaviest are found one after the other."""
SPARES_MAX = 64
"""The servers of one request share this many of the next best hosts as their alternates."""


def pick_all(
    memories: Memories,
    hosts: HostTable,
    spec: RequestSpec,
    choice: Choice,
    lean: Lean | None = None,
) -> BuildPlan:
    """Choose a host for each server, as long as there are any."""
    field = Field(memories, hosts, spec)
    entries: list[Entry] = []
    seen: dict[ProviderId, Generation] = {}
    equals = NOBODY
    with ExitStack() as undoing:
        # If anything fails on the way, what was taken goes back: nobody else knows of it.
        for turn in range(spec.turn, spec.turn + spec.count):
            weights = field.weights
            if lean is not None and (more := lean(hosts, spec, entries)) is not None:
                weights = weights + more[field.rows]
            place, equals = _pick(weights, choice.subset_size, spec.seed, turn)
            if place is None:
                break
            best = field.row(place)
            told = None
            if len(entries) < choice.parts_max:
                told = field.parts(best)
            entry = _entry(hosts, spec, best, float(weights[place]), turn, told)
            depletion.take(hosts, spec, entry)
            undoing.callback(depletion.give_back, hosts, spec, entry)
            entries.append(entry)
            seen[entry.provider_id] = hosts.generation(entry.index)
            for each in entry.loans:
                seen[each.provider_id] = hosts.pools.generation(each.index)
            if len(entries) < spec.count:
                field.took(entry.index, entry.host)
        if entries and choice.alternates:
            # As if they were dealt: not all requests are to have the same hosts next.
            first = draw(spec.seed, ALTERNATE_TURNS + spec.turn, 2**32)
            spares = _best(equals, field, choice.alternates, entries, first)
            entries = _with_alternates(hosts, entries, spares, choice.alternates)
        is_short = len(entries) < spec.count
        gone = removals(field.taken, hosts, spec, is_wanted_whole=is_short)
        undoing.pop_all()
    return BuildPlan(tuple(entries), seen, hosts.host_count, field.candidates, gone)


def _entry(
    hosts: HostTable,
    spec: RequestSpec,
    index: HostIndex,
    weight: float,
    turn: int,
    told: Mapping[str, float] | None,
) -> Entry:
    loans = depletion.loans(hosts, spec, index, turn)
    provider_id = ProviderId(int(hosts.provider_ids[index]))
    return Entry(index, provider_id, hosts.names[index], weight, loans, (), told)


def _pick(weights: Weights, draw_from: int, seed: int, turn: int) -> tuple[int | None, Indexes]:
    """Draw one of the ``draw_from`` best; who ties for the last place among them shares it.

    Gives its place, or None without any host; and all that are the best, if it was drawn from
    them alone.
    """
    least = weights.max(initial=GONE)
    if least == GONE:
        return None, NOBODY
    size = 1
    if draw_from > 1:
        size = min(draw_from, int(np.count_nonzero(weights > GONE)))
        if size > 1:
            least = np.partition(weights, -size)[-size]
            better = np.flatnonzero(weights > least)
            drawn = draw(seed, 2 * turn + 1, size)
            if drawn < better.shape[0]:
                return int(better[drawn]), NOBODY
    ties = (weights == least).nonzero()[0]
    best = int(ties[draw(seed, 2 * turn, ties.shape[0])])
    return best, ties if size == 1 else NOBODY


def _with_alternates(
    hosts: HostTable, entries: Sequence[Entry], spares: Sequence[int], count: int
) -> list[Entry]:
    """Give each entry some of the hosts that are next best now that all have been placed.

    Not the same to all: a host where builds fail must not have its servers' next builds all
    go to one other.
    """
    if not spares:
        return list(entries)
    names = [hosts.names[index] for index in spares]
    made: list[Entry] = []
    for number, entry in enumerate(entries):
        start = number * count % len(names)
        mine = (names[start:] + names[:start])[:count]
        made.append(
            Entry(
                entry.index,
                entry.provider_id,
                entry.host,
                entry.weight,
                entry.loans,
                tuple(mine),
                entry.parts,
            )
        )
    return made


def _best(
    equals: Indexes, field: Field, count: int, entries: Sequence[Entry], first: int
) -> list[HostIndex]:
    """The rows with most weight that no entry has, best first, as many as all may need.

    The equals of the last pick were the best a moment ago, and are so still but for the one
    that was drawn: if they suffice, ``first`` says with which of them to begin.
    """
    weights = field.weights
    chosen = {entry.index for entry in entries}
    wanted = min(SPARES_MAX, count * len(entries))
    most = wanted + len(chosen)
    size = equals.shape[0]
    if size > most:
        found = [int(equals[(first + step) % size]) for step in range(most)]
    elif most <= FEW:
        found = _heaviest(weights, most)
    else:
        some = np.argpartition(-weights, min(most, weights.shape[0] - 1))[: most + 1]
        found = some[np.argsort(-weights[some], kind="stable")].tolist()
    rows = [field.row(place) for place in found if weights[place] > GONE]
    return [row for row in rows if row not in chosen][:wanted]


def _heaviest(weights: Weights, count: int) -> list[int]:
    """The places with most weight, one after the other; sooner than sorting for a few."""
    left = weights.copy()
    found: list[int] = []
    for _ in range(min(count, left.shape[0])):
        best = int(left.argmax())
        if left[best] == GONE:
            break
        found.append(best)
        left[best] = GONE
    return found
