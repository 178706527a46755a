"""Places all servers of a request together. Each pick depletes the host and its pools.

Source: the design *Distributed Scheduler*, "Costs & Weights". Consumed resources are virtually
depleted, so that the weights can change accordingly.

Always true: the plan is a function of table, spec and seed. Exactly the amounts of the entries are
taken from the table, and :func:`depletion.undo` gives them back. After a pick, only the changed
rows are evaluated again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.ids import Generation, HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling import depletion
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.field import Field
from innkeeper.scheduling.filters import forced_host
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import Pipeline, Taken, Weights, removals
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.amounts import Indexes
from innkeeper.snapshot.columns import HostTable

Lean = Callable[[HostTable, RequestSpec, Sequence[Entry]], Weights | None]
"""A function that returns corrections to add to the weights before a pick. The last argument has
the earlier picks."""
NOBODY: Indexes = np.zeros(0, dtype=np.intp)
ALTERNATE_TURNS = 2**40
"""The turn number of the first draw among alternates. Other draws use lower turn numbers."""
FEW = 8
"""The maximum number of hosts for which repeated argmax is faster than a partition."""
SPARES_MAX = 64
"""The servers of one request share at most this many alternates."""


def pick_all(
    memories: Memories,
    hosts: HostTable,
    spec: RequestSpec,
    choice: Choice,
    lean: Lean | None = None,
) -> BuildPlan:
    """Choose hosts for the servers one by one, and take their amounts from the table.

    The function stops early if no host is left.
    """
    field = Field(memories, hosts, spec)
    entries: list[Entry] = []
    seen: dict[ProviderId, Generation] = {}
    equals = NOBODY
    is_made = False
    try:
        for turn in range(spec.turn, spec.turn + spec.count):
            weights = field.weights
            if lean is not None and (more := lean(hosts, spec, entries)) is not None:
                weights = weights + more[field.rows]
            place, equals = _pick(weights, choice.subset_size, spec.seed, turn)
            if place is None:
                break
            best = field.row(place)
            parts = field.parts(best) if len(entries) < choice.parts_max else None
            entry = _entry(hosts, spec, best, float(weights[place]), turn, parts)
            depletion.take(hosts, spec, entry)
            entries.append(entry)
            _note_seen(hosts, entry, seen)
            if len(entries) < spec.count:
                field.took(entry.index, entry.host)
        if entries and choice.alternates:
            # The start is random, so that requests have different alternates.
            first = draw(spec.seed, ALTERNATE_TURNS + spec.turn, 2**32)
            spares = _best(equals, field, choice.alternates, entries, first)
            entries = _with_alternates(hosts, entries, spares, choice.alternates)
        is_short = len(entries) < spec.count
        gone = removals(field.taken, hosts, spec, with_missing=is_short)
        is_made = True
    finally:
        if not is_made:
            _give_back(hosts, spec, entries)
    return BuildPlan(tuple(entries), seen, hosts.host_count, field.candidates, gone)


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A plan for named hosts. ``places`` has for each entry the index of its host in the names."""

    plan: BuildPlan
    places: tuple[int, ...]


def pick_named(
    memories: Memories, hosts: HostTable, spec: RequestSpec, choice: Choice, names: Sequence[str]
) -> NamedPlan:
    """Check one named host for each server. Place the server there if the host may be used.

    The result is the same as for single requests with a ``forced_host``, one after the other. A
    host that is named twice is checked again after its first pick. However, the filters are applied
    only once, to all hosts together.
    """
    wanted = [hosts.index_by_name.get(name) for name in names]
    rows = np.unique(np.array([e for e in wanted if e is not None], dtype=np.intp))
    field = Field(memories, hosts, spec, rows)
    places = {int(row): place for place, row in enumerate(rows)}
    # A pick changes the weights of other hosts only if there are pools or a group.
    is_apart = not hosts.pools.row_count and spec.group is None
    left = Counter(wanted)
    found: list[int] = []
    entries: list[Entry] = []
    seen: dict[ProviderId, Generation] = {}
    is_made = False
    try:
        for number, index in enumerate(wanted):
            left[index] -= 1
            weight = GONE if index is None else field.weights[places[index]]
            if index is None or weight == GONE:
                continue
            parts = field.parts(index) if len(entries) < choice.parts_max else None
            entry = _entry(hosts, spec, index, float(weight), spec.turn + number, parts)
            depletion.take(hosts, spec, entry)
            entries.append(entry)
            found.append(number)
            _note_seen(hosts, entry, seen)
            if left[index] or not is_apart:
                field.took(index, entry.host)
        taken = [*field.steady, *_by_name(memories, field)]
        gone = removals(taken, hosts, spec, with_missing=False)
        is_made = True
    finally:
        if not is_made:
            _give_back(hosts, spec, entries)
    # Each server counts as its own decision, with its host as the only candidate.
    made = BuildPlan(tuple(entries), seen, hosts.host_count, min(len(entries), 1), gone)
    return NamedPlan(made, tuple(found))


def _by_name(memories: Memories, field: Field) -> Taken:
    """Return the number of hosts that the filter of the forced host removes for one server."""
    named = [each for each in memories.pipeline.filters if each.NAME == forced_host.NAME]
    return [(each, field.steady_left - 1) for each in named if field.steady_left > 1]


def _give_back(hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]) -> None:
    """Give the amounts of the entries back after an error, because the caller does not do so."""
    for entry in reversed(entries):
        depletion.give_back(hosts, spec, entry)


def _note_seen(hosts: HostTable, entry: Entry, seen: dict[ProviderId, Generation]) -> None:
    seen[entry.provider_id] = hosts.generation(entry.index)
    for each in entry.loans:
        seen[each.provider_id] = hosts.pools.generation(each.index)


def _entry(
    hosts: HostTable,
    spec: RequestSpec,
    index: HostIndex,
    weight: float,
    turn: int,
    parts: Mapping[str, float] | None,
) -> Entry:
    loans = depletion.loans(hosts, spec, index, turn)
    provider_id = ProviderId(int(hosts.provider_ids[index]))
    return Entry(index, provider_id, hosts.names[index], weight, loans, (), parts)


class PickingScheduler:
    """A driver that picks by weight; see :class:`.scheduler.Scheduler`."""

    NAME: str

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = pipeline
        self._choice = choice
        self._memories = Memories(pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each server; see :class:`.scheduler.Scheduler`."""
        return pick_all(self._memories, hosts, spec, self._choice)

    def plan_named(self, hosts: HostTable, spec: RequestSpec, names: Sequence[str]) -> NamedPlan:
        """Check a named host for each server; see :func:`pick_named`."""
        return pick_named(self._memories, hosts, spec, self._choice, names)


def _pick(weights: Weights, draw_from: int, seed: int, turn: int) -> tuple[int | None, Indexes]:
    """Draw one of the ``draw_from`` best places.

    Places that are tied for the last ranks are equally likely to be drawn. Return the drawn place
    (None if no host is left) and an array. If only places with the best weight took part in the
    draw, the array has all of these places. Otherwise, the array is empty.
    """
    # Up to tens of thousands of hosts, ``max`` takes longer, because it first calls a Python
    # function.
    least = weights[weights.argmax()] if weights.shape[0] else GONE
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
    """Return the entries, each with ``count`` alternates from ``spares``.

    ``spares`` are the next best hosts after all picks. The alternates differ by entry, so that the
    servers of a failing host retry on different hosts.
    """
    if not spares:
        return list(entries)
    names = [hosts.names[index] for index in spares]
    result: list[Entry] = []
    for number, each in enumerate(entries):
        start = number * count % len(names)
        mine = tuple((names[start:] + names[:start])[:count])
        # ``dataclasses.replace`` would take four times as long.
        result.append(
            Entry(
                each.index, each.provider_id, each.host, each.weight, each.loans, mine, each.parts
            )
        )
    return result


def _best(
    equals: Indexes, field: Field, count: int, entries: Sequence[Entry], first: int
) -> list[HostIndex]:
    """Return the rows of greatest weight that no entry uses, best first. They become alternates.

    ``equals`` are the places that had the best weight in the last pick. All of them except the
    drawn place still have this weight. If there are enough of these places, ``first`` determines
    the place to begin with.
    """
    weights = field.weights
    chosen = {entry.index for entry in entries}
    needed = min(SPARES_MAX, count * len(entries))
    most = needed + len(chosen)
    size = equals.shape[0]
    if size > most:
        found = [int(equals[(first + step) % size]) for step in range(most)]
    elif most <= FEW:
        found = _heaviest(weights, most)
    else:
        some = np.argpartition(-weights, min(most, weights.shape[0] - 1))[: most + 1]
        found = some[np.argsort(-weights[some], kind="stable")].tolist()
    rows = [field.row(place) for place in found if weights[place] > GONE]
    return [row for row in rows if row not in chosen][:needed]


def _heaviest(weights: Weights, count: int) -> list[int]:
    """Find the ``count`` places of greatest weight by repeated argmax."""
    left = weights.copy()
    found: list[int] = []
    for _ in range(min(count, left.shape[0])):
        best = int(left.argmax())
        if left[best] == GONE:
            break
        found.append(best)
        left[best] = GONE
    return found
