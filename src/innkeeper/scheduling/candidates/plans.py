"""Plans the order in which a search fills slots, and the checks after each slot.

Always true: a plan has no reference to the search that uses the plan. Such a reference cycle would
keep the columns of the search in memory until the next garbage collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery
from innkeeper.scheduling.candidates.slots import Slot, classes_in_several
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.forests import Forest, Rows

Check = Callable[[list[int]], bool]
"""A function that checks the rows chosen so far. The last row is the newest."""


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """An order in which to fill the slots. All trees for which this order is best share the plan.

    A *level* is a position in this order. ``order`` has the slot of each level, and ``place`` the
    level of each slot. For each level, ``meeting`` has the amounts of classes that another slot
    also needs. Both slots may get these amounts from the same provider. ``checks`` has the checks
    that run as soon as the level is filled.
    """

    order: Sequence[int]
    place: Sequence[int]
    meeting: Sequence[Sequence[tuple[str, int]]]
    checks: Sequence[Sequence[Check]]


def plan_of(
    query: CandidateQuery,
    slots: Sequence[Slot],
    together: Sequence[Mask],
    forest: Forest,
    order: Sequence[int],
) -> SlotPlan:
    """Make the plan for this order. The slots of the unsuffixed group must come first."""
    several = classes_in_several(slots)
    ordered = [slots[at] for at in order]
    meeting = [
        [(name, amount) for name, amount in slot.amounts.items() if name in several]
        for slot in ordered
    ]
    suffixes = [slot.suffix for slot in ordered]
    return SlotPlan(
        order=order,
        place=[order.index(at) for at in range(len(order))],
        meeting=meeting,
        checks=_checks(query, suffixes, together, forest),
    )


def _checks(
    query: CandidateQuery, suffixes: Sequence[str], together: Sequence[Mask], forest: Forest
) -> list[list[Check]]:
    checks: list[list[Check]] = [[] for _ in suffixes]
    last = {suffix: level for level, suffix in enumerate(suffixes)}
    is_suffixed = [suffix != UNSUFFIXED for suffix in suffixes]
    if together:
        # The slots of the unsuffixed group come first, so the check sees only providers of this
        # group.
        checks[last[UNSUFFIXED]].append(partial(_has_traits_together, together))
    for level, has_suffix in enumerate(is_suffixed):
        if query.is_isolated and has_suffix:
            checks[level].append(partial(_is_apart, is_suffixed))
        if query.takes_one_of_a_tree:
            checks[level].append(partial(_is_one_of_a_tree, forest.tree_of))
    for names in dict.fromkeys(query.same_subtrees):
        levels = sorted(last[name] for name in names)
        if len(levels) > 1:
            checks[levels[-1]].append(partial(_is_subtree, forest, levels))
    return checks


def _has_traits_together(together: Sequence[Mask], rows: list[int]) -> bool:
    return all(any(has_trait[row] for row in rows) for has_trait in together)


def _is_apart(is_suffixed: Sequence[bool], rows: list[int]) -> bool:
    newest = rows[-1]
    others = zip(rows[:-1], is_suffixed, strict=False)
    return not any(has_suffix and row == newest for row, has_suffix in others)


def _is_one_of_a_tree(tree_of: Rows, rows: list[int]) -> bool:
    newest = rows[-1]
    return all(row == newest or tree_of[row] != tree_of[newest] for row in rows[:-1])


def _is_subtree(forest: Forest, levels: Sequence[int], rows: list[int]) -> bool:
    """Return whether one of the chosen rows is an ancestor of all other chosen rows."""
    among = {rows[level] for level in levels}
    if len(among) == 1:
        return True
    lines = [forest.line_of(row) for row in among]
    return not among.isdisjoint(lines[0].intersection(*lines[1:]))
