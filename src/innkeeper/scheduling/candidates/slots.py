"""Finds the slots of a candidate query, and the options for each slot by tree.

A *slot* is one class of the unsuffixed group, or a whole suffixed group. The options of a slot are
the rows of providers that can fill the slot. Conditions between slots are checked by
:mod:`innkeeper.scheduling.candidates.search`.

Always true: an option has enough free capacity within the unit rules, and satisfies all
conditions of its group that concern a single provider.
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
    """A slot, with its options in every tree.

    ``own`` has the options inside each tree. The sharing providers that are options for a tree are
    the group ``lenders[tree]`` in ``lent``. ``amounts`` are the amounts that the chosen option
    supplies. They are empty for a group without resources.
    """

    suffix: str
    amounts: Mapping[str, int]
    own: Grouped
    lent: Grouped
    lenders: Rows

    @property
    def counts(self) -> Rows:
        """The number of options by tree."""
        counts: Rows = self.own.counts + self.lent.counts[self.lenders]
        return counts

    def options(self, tree: int) -> list[int]:
        """Return the options for a tree: first those inside the tree, then sharing providers."""
        return self.own.of(tree) + self.lent.of(int(self.lenders[tree]))

    def has_any(self, mask: Mask) -> Mask:
        """For each tree, return whether the mask is True for one of the tree's options."""
        some: Mask = self.own.has_any(mask) | self.lent.has_any(mask)[self.lenders]
        return some


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots of a query. The slots of the unsuffixed group come first.

    ``trees`` are the trees with options for every slot. ``together`` has a mask for each set of
    traits that the unsuffixed group requires. The mask is True for the rows with any trait of the
    set. For each mask, the providers chosen for the group must include a row where the mask is
    True.
    """

    all: tuple[Slot, ...]
    trees: Rows
    together: tuple[Mask, ...]


def slots_of(table: ProviderTable, query: CandidateQuery) -> Slots:
    """Find the options of every slot in every tree."""
    found: list[Slot] = []
    together: tuple[Mask, ...] = ()
    for group in sorted(query.groups, key=lambda group: group.suffix != UNSUFFIXED):
        if group.suffix != UNSUFFIXED:
            found.append(_slot_of_group(table, group))
        else:
            together = tuple(table.has_trait(names) for names in group.required)
            found += _slots_of_classes(table, group)
    return Slots(tuple(found), _trees(table, query, found, together), together)


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
    # A tree has no candidate if none of its options has a required trait. This excludes most trees.
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
    """Make the slot of a suffixed group: one provider must meet all conditions of the group."""
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
    own, lent = forest.trees.narrowed(fits), forest.lending.narrowed(fits)
    return Slot(group.suffix, group.resources, own, lent, forest.lenders)


def _slots_of_classes(table: ProviderTable, group: RequestGroup) -> list[Slot]:
    """Make the slots of the unsuffixed group: one slot for each class.

    If the root of a tree is in an aggregate, the whole tree counts as being in the aggregate. A
    sharing provider must itself be in the aggregate.
    """
    forest = table.forest
    root_rows = forest.roots[forest.tree_of]
    is_good = np.ones(table.row_count, dtype=np.bool_)
    if group.forbidden:
        is_good &= ~table.has_trait(group.forbidden)
    # Either the provider or its root must be in all required aggregates.
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
        own, lent = (
            forest.trees.narrowed(fits & is_good),
            forest.lending.narrowed(fits & may_be_lent),
        )
        found.append(Slot(group.suffix, {name: amount}, own, lent, lenders))
    return found


def _in_tree(table: ProviderTable, uuid: ProviderUuid) -> Mask:
    row = table.row_of.get(uuid)
    if row is None:
        return np.zeros(table.row_count, dtype=np.bool_)
    in_tree: Mask = table.forest.tree_of == table.forest.tree_of[row]
    return in_tree


def classes_in_several(slots: Collection[Slot]) -> frozenset[str]:
    """Return the classes that more than one slot needs."""
    seen: set[str] = set()
    several: set[str] = set()
    for slot in slots:
        several |= seen & slot.amounts.keys()
        seen |= slot.amounts.keys()
    return frozenset(several)
