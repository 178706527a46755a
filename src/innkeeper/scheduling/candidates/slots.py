"""What must be found for a request, and where each part of it may come from.

A *slot* is one thing to be found: a class of the unsuffixed group, or a suffixed group. Its
options are the rows that could fill it, tree by tree. All of this is masks over the columns;
what must hold between slots is left to :mod:`innkeeper.scheduling.candidates.search`.

Always true: an option alone fits, with the unit rules and what is held already; it satisfies
every condition of its group that is about one provider.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery, RequestGroup
from innkeeper.domain.ids import ProviderUuid
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.forests import NOBODY, Grouped, Rows
from innkeeper.snapshot.providers import ProviderTable

ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Slot:
    """``own`` are a tree's own options, ``lent[lenders[tree]]`` those of who shares with it.

    ``amounts`` is what is taken of whichever is chosen; nothing, for a group that asks for no
    resources.
    """

    suffix: str
    amounts: Mapping[str, int]
    own: Grouped
    lent: Grouped
    lenders: Rows

    @property
    def counts(self) -> Rows:
        """How many options there are, by tree."""
        counts: Rows = self.own.counts + self.lent.counts[self.lenders]
        return counts

    def options(self, tree: int) -> list[int]:
        """All options of a tree: its own, then those lent to it."""
        return self.own.of(tree) + self.lent.of(int(self.lenders[tree]))

    def has_any(self, mask: Mask) -> Mask:
        """Which trees have an option in the mask."""
        some: Mask = self.own.has_any(mask) | self.lent.has_any(mask)[self.lenders]
        return some


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
    table: ProviderTable, query: CandidateQuery, slots: Sequence[Slot], together: Sequence[Mask]
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
        is_possible &= reduce(
            np.logical_or, [slot.has_any(has_trait) for slot in slots if slot.suffix == UNSUFFIXED]
        )
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
    return Slot(
        group.suffix,
        group.resources,
        forest.trees.narrowed(fits),
        forest.lending.narrowed(fits),
        forest.lenders,
    )


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
    lenders = forest.lenders
    if group.not_member_of:
        is_banned = forest.in_any(group.not_member_of)
        is_good &= ~(is_banned | is_banned[root_rows])
        may_be_lent &= ~is_banned
        lenders = np.where(is_banned[forest.roots], NOBODY, lenders)
    if group.in_tree is not None:
        is_good &= _in_tree(table, group.in_tree)
        may_be_lent[:] = False
    found: list[Slot] = []
    for name, amount in group.resources.items():
        fits = _fits(table, name, amount)
        found.append(
            Slot(
                group.suffix,
                {name: amount},
                forest.trees.narrowed(fits & is_good),
                forest.lending.narrowed(fits & may_be_lent),
                lenders,
            )
        )
    return found


def _in_tree(table: ProviderTable, uuid: ProviderUuid) -> Mask:
    row = table.row_of.get(uuid)
    if row is None:
        return np.zeros(table.row_count, dtype=np.bool_)
    in_tree: Mask = table.forest.tree_of == table.forest.tree_of[row]
    return in_tree


def classes_in_several(slots: Collection[Slot]) -> frozenset[str]:
    """Classes that more than one slot takes, whose amounts may meet on one provider."""
    seen: set[str] = set()
    several: set[str] = set()
    for slot in slots:
        several |= seen & slot.amounts.keys()
        seen |= slot.amounts.keys()
    return frozenset(several)
