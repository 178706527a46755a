"""Finds the allocation candidates of a query, and summarizes their providers.

In some trees, the same provider is the only option for all slots. All these trees are evaluated
together on whole columns. The other trees are searched one by one, until there are enough
candidates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from innkeeper.domain.candidates import (
    Candidate,
    CandidateQuery,
    ClassSummary,
    FoundCandidates,
    ProviderSummary,
)
from innkeeper.domain.ids import ProviderUuid
from innkeeper.domain.slices import Placing
from innkeeper.scheduling.candidates.search import GoesOn, Picks, Search, Shuffle
from innkeeper.scheduling.candidates.slots import Slot, Slots, slots_of
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.forests import NO_ROW, Rows
from innkeeper.snapshot.providers import ProviderTable

PARTS_MAX = 1_000_000
"""The limit for the number of slots multiplied by the number of candidates in one response. No
setting raises this limit. A response at this limit takes a few hundred megabytes of memory."""


def find(
    table: ProviderTable,
    query: CandidateQuery,
    placing: Placing,
    shuffle: Shuffle | None = None,
    goes_on: GoesOn = lambda: True,
) -> FoundCandidates:
    """Search for candidates until there are enough, or until ``goes_on`` returns False.

    ``shuffle`` randomizes the order. Without ``shuffle``, the result is a function of table and
    query.
    """
    slots = slots_of(table, query)
    search = Search(table, query, slots, shuffle, goes_on)
    order = slots.trees.tolist()
    if shuffle is not None:
        shuffle(order)
    most = min(placing.max_allocation_candidates, PARTS_MAX // len(slots.all))
    limit = most if query.limit is None else min(most, query.limit)
    is_depth_first = placing.allocation_candidates_generation_strategy == "depth-first"
    walk = chain.from_iterable if is_depth_first else _breadth_first
    plain = _plain_rows(table, query, slots)
    if plain is None:
        found = walk(map(search.of_tree, order))
    else:
        found = walk(_either(search, plain, tree) for tree in order)
    picks = list(islice(found, limit))
    # A further search would only reveal whether one more candidate exists.
    is_bounded = len(picks) == most and (query.limit is None or query.limit > most)
    return FoundCandidates(
        _candidates(table, slots.all, picks),
        _summaries(table, slots.all, picks),
        is_bounded or search.is_cut,
    )


def _breadth_first(trees: Iterable[Iterable[Picks]]) -> Iterator[Picks]:
    """Lazily yield the first choice of each tree, then each tree's second choice, and so on."""
    waiting: deque[Iterator[Picks]] = deque()
    for tree in trees:
        choices = iter(tree)
        first = next(choices, None)
        if first is not None:
            waiting.append(choices)
            yield first
    while waiting:
        choices = waiting.popleft()
        following = next(choices, None)
        if following is not None:
            waiting.append(choices)
            yield following


# -- trees without a choice --------------------------------------------------------------------


def _plain_rows(table: ProviderTable, query: CandidateQuery, slots: Slots) -> Rows | None:
    """For each tree, return the row that is the only option for all slots, or ``NO_ROW``.

    Return None for a query with several groups, because the choice for one group affects the
    choices for the others.
    """
    if len(query.groups) > 1:
        return None
    forest = table.forest
    rows = np.full(forest.tree_count, NO_ROW, dtype=np.intp)
    # Sharing providers are excluded: they are options in several trees, and only the search removes
    # duplicate choices.
    trees = slots.trees
    for slot in slots.all:
        trees = trees[(slot.own.counts[trees] == 1) & (slot.counts[trees] == 1)]
    chosen = [slot.own.rows[slot.own.starts[trees]] for slot in slots.all]
    is_plain: Mask = np.ones(len(trees), dtype=np.bool_)
    for each in chosen:
        is_plain &= each == chosen[0]
    for has_trait in slots.together:
        is_plain &= has_trait[chosen[0]]
    if forest.sharing:
        is_plain &= ~np.isin(chosen[0], list(forest.sharing))
    rows[trees[is_plain]] = chosen[0][is_plain]
    return rows


def _either(search: Search, plain: Rows, tree: int) -> Iterable[Picks]:
    row = int(plain[tree])
    if row == NO_ROW:
        return search.of_tree(tree)
    return ((row,) * len(search.slots),)


# -- answers ---------------------------------------------------------------------------------


def _candidates(
    table: ProviderTable, slots: Sequence[Slot], picks: Sequence[Picks]
) -> list[Candidate]:
    uuids = table.uuids
    if len({slot.suffix for slot in slots}) == 1:
        whole = {name: amount for slot in slots for name, amount in slot.amounts.items()}
        suffix = slots[0].suffix
        return [
            Candidate({uuids[rows[0]]: whole}, {suffix: [uuids[rows[0]]]})
            if rows.count(rows[0]) == len(rows)
            else _candidate(uuids, slots, rows)
            for rows in picks
        ]
    return [_candidate(uuids, slots, rows) for rows in picks]


def _candidate(uuids: Sequence[ProviderUuid], slots: Sequence[Slot], rows: Picks) -> Candidate:
    allocations: dict[ProviderUuid, dict[str, int]] = {}
    mappings: dict[str, list[ProviderUuid]] = {}
    for slot, row in zip(slots, rows, strict=True):
        uuid = uuids[row]
        named = mappings.setdefault(slot.suffix, [])
        if uuid not in named:
            named.append(uuid)
        if slot.amounts:
            taken = allocations.setdefault(uuid, {})
            for name, amount in slot.amounts.items():
                taken[name] = taken.get(name, 0) + amount
    return Candidate(allocations, mappings)


def _summaries(
    table: ProviderTable, slots: Sequence[Slot], picks: Sequence[Picks]
) -> dict[ProviderUuid, ProviderSummary]:
    """Summarize all providers in the trees that supply amounts for the candidates."""
    if not picks:
        return {}
    forest = table.forest
    giving = [at for at, slot in enumerate(slots) if slot.amounts]
    chosen = np.array(picks, dtype=np.intp)[:, giving]
    rows = forest.rows_of(np.unique(forest.tree_of[chosen]))
    resources = _resources(table, rows)
    uuids, names = table.uuids, table.trait_names
    parents = forest.parents
    roots = forest.roots[forest.tree_of[rows]].tolist()
    return {
        uuids[row]: ProviderSummary(
            has, names[row], None if parents[row] == NO_ROW else uuids[parents[row]], uuids[root]
        )
        for row, has, root in zip(rows.tolist(), resources, roots, strict=True)
    }


def _resources(table: ProviderTable, rows: Rows) -> list[dict[str, ClassSummary]]:
    found: list[dict[str, ClassSummary]] = [{} for _ in range(len(rows))]
    for name, max_units in table.max_units.items():
        # Every inventory has a max_unit above 0.
        there = np.flatnonzero(max_units[rows] > 0)
        if not len(there):
            continue
        capacities = table.capacities[name][rows[there]].tolist()
        used = table.used[name][rows[there]].tolist()
        for at, capacity, taken in zip(there.tolist(), capacities, used, strict=True):
            found[at][name] = ClassSummary(int(capacity), int(taken))
    return found
