"""What must be found for a request, and where each part of it may come from.

A *slot* is one thing to be found: a class of the unsuffixed group, or a suffixed group. Its
options are the rows that could fill it, tree by tree. All of this is masks over the columns;
what must hold between slots is left to :mod:`innkeeper.scheduling.candidates.search`.

Always true: an option alone fits, with the unit rules and what is held already; it satisfies
every condition of its group that is about one provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery, RequestGroup
from innkeeper.domain.ids import ProviderUuid
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.forests import Rows
from innkeeper.snapshot.providers import ProviderTable

ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Slot:
    """``rows[starts[t]:starts[t + 1]]`` are the options under the root of tree *t*.

    Most of them are of that tree; others are of providers that share with it. ``amounts`` is
    what is taken of whichever is chosen; nothing, for a group that asks for no resources.
    """

    suffix: str
    amounts: Mapping[str, int]
    rows: Rows
    starts: Rows

    @property
    def counts(self) -> Rows:
        """How many options there are, by tree."""
        counts: Rows = np.diff(self.starts)
        return counts


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots of a query, the unsuffixed group's first, and the trees that have options for
    each of them.

    ``together`` are traits that the unsuffixed group's providers must have between them: for
    each set of traits, the rows with at least one.
    """

    all: tuple[Slot, ...]
    trees: Rows
    together: tuple[Mask, ...]


def slots_of(table: ProviderTable, query: CandidateQuery) -> Slots:
    """Find every slot's options in every tree."""
    found: list[Slot] = []
    together: tuple[Mask, ...] = ()
    for group in sorted(query.groups, key=_is_suffixed):
        if _is_suffixed(group):
            found.append(_slot_of_group(table, group))
        else:
            together = tuple(table.has_trait(names) for names in group.required)
            found += _slots_of_classes(table, group)
    return Slots(tuple(found), _trees(table, query, found, together), together)


def _is_suffixed(group: RequestGroup) -> bool:
    return group.suffix != UNSUFFIXED


def _trees(
    table: ProviderTable,
    query: CandidateQuery,
    slots: Sequence[Slot],
    together: Sequence[Mask],
) -> Rows:
    forest = table.forest
    is_possible = np.ones(forest.tree_count, dtype=np.bool_)
    for slot in slots:
        is_possible &= slot.counts > 0
    for name in query.root_required:
        is_possible &= table.has_trait([name])[forest.roots]
    if query.root_forbidden:
        is_possible &= ~table.has_trait(query.root_forbidden)[forest.roots]
    # What no option has, no choice of them has; most trees of a cloud end here.
    for has_trait in together:
        has_any = np.zeros(forest.tree_count, dtype=np.bool_)
        for slot in slots:
            if slot.suffix == UNSUFFIXED:
                counts = slot.counts
                trees = np.repeat(np.arange(forest.tree_count), counts)
                has_any[trees[has_trait[slot.rows]]] = True
        is_possible &= has_any
    return np.flatnonzero(is_possible)


# -- options ---------------------------------------------------------------------------------


def _fits(table: ProviderTable, name: str, amount: int) -> Mask:
    if name not in table.free:
        return np.zeros(table.row_count, dtype=np.bool_)
    fits: Mask = table.free[name] >= amount
    given = table.gives(name, amount, ALL)
    if given is not None:
        fits &= given
    return fits


def _slot_of_group(table: ProviderTable, group: RequestGroup) -> Slot:
    """A suffixed group: one provider has all of it, and satisfies every condition itself."""
    forest = table.forest
    fits = np.ones(table.row_count, dtype=np.bool_)
    for name, amount in group.resources.items():
        fits &= _fits(table, name, amount)
    for traits in group.required:
        fits &= table.has_trait(traits)
    if group.forbidden:
        fits &= ~table.has_trait(group.forbidden)
    for aggregates in group.member_of:
        fits &= forest.in_any(aggregates)
    if group.not_member_of:
        fits &= ~forest.in_any(group.not_member_of)
    if group.in_tree is not None:
        fits &= _in_tree(table, group.in_tree)
    lent = {row: trees for row, trees in forest.served.items() if fits[row]}
    return _slot(table, group.suffix, group.resources, fits, lent)


def _slots_of_classes(table: ProviderTable, group: RequestGroup) -> list[Slot]:
    """The unsuffixed group: each class from one provider, near each other by tree.

    An aggregate on a root is one on its whole tree. It is none on a provider that is lent to
    the tree, which must be a member itself.
    """
    forest = table.forest
    root_rows = forest.roots[forest.tree_of]
    is_good = np.ones(table.row_count, dtype=np.bool_)
    if group.forbidden:
        is_good &= ~table.has_trait(group.forbidden)
    # One of the two is a member of everything that is asked for: halves do not add up.
    is_member = np.ones(table.row_count, dtype=np.bool_)
    for aggregates in group.member_of:
        is_member &= forest.in_any(aggregates)
    may_be_lent = is_good & is_member
    is_good &= is_member | is_member[root_rows]
    is_open = np.ones(forest.tree_count, dtype=np.bool_)
    if group.not_member_of:
        is_banned = forest.in_any(group.not_member_of)
        is_good &= ~(is_banned | is_banned[root_rows])
        may_be_lent &= ~is_banned
        is_open = ~is_banned[forest.roots]
    if group.in_tree is not None:
        is_good &= _in_tree(table, group.in_tree)
        may_be_lent[:] = False
    found: list[Slot] = []
    for name, amount in group.resources.items():
        fits = _fits(table, name, amount)
        lent = {
            row: trees[is_open[trees]]
            for row, trees in forest.served.items()
            if fits[row] and may_be_lent[row]
        }
        found.append(_slot(table, group.suffix, {name: amount}, fits & is_good, lent))
    return found


def _in_tree(table: ProviderTable, uuid: ProviderUuid) -> Mask:
    row = table.row_of.get(uuid)
    if row is None:
        return np.zeros(table.row_count, dtype=np.bool_)
    in_tree: Mask = table.forest.tree_of == table.forest.tree_of[row]
    return in_tree


def _slot(
    table: ProviderTable,
    suffix: str,
    amounts: Mapping[str, int],
    own: Mask,
    lent: Mapping[int, Rows],
) -> Slot:
    """Order a slot's options by tree: those of the tree itself, then those lent to it."""
    forest = table.forest
    rows = forest.order[own[forest.order]]
    trees = forest.tree_of[rows]
    if any(len(served) for served in lent.values()):
        rows = np.concatenate([rows, *_repeated(lent)])
        trees = np.concatenate([trees, *lent.values()])
        by_tree = np.argsort(trees, kind="stable")
        rows, trees = rows[by_tree], trees[by_tree]
    counts = np.bincount(trees, minlength=forest.tree_count)
    starts = np.zeros(forest.tree_count + 1, dtype=np.intp)
    np.cumsum(counts, out=starts[1:])
    return Slot(suffix, amounts, rows, starts)


def _repeated(lent: Mapping[int, Rows]) -> Iterable[Rows]:
    for row, trees in lent.items():
        yield np.full(len(trees), row, dtype=np.intp)


def classes_in_several(slots: Collection[Slot]) -> frozenset[str]:
    """Classes that more than one slot takes, whose amounts may meet on one provider."""
    seen: set[str] = set()
    several: set[str] = set()
    for slot in slots:
        several |= seen & slot.amounts.keys()
        seen |= slot.amounts.keys()
    return frozenset(several)
