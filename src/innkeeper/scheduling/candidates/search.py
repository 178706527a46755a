"""Search a tree for all valid choices. A choice has one option for every slot.

The search goes depth first. Each pick is immediately checked against the earlier picks, to prune
invalid combinations early. There are checks for sums of amounts on one provider, for isolated
groups, for subtrees, and for traits of the unsuffixed group. A pick that fails a check is a *dead
end*.

Always true: according to the table, every result has capacity for a claim of all its amounts. No
result is returned twice.

The results may be incomplete, because with many groups and few providers, a complete search could
take practically forever. A search abandons a tree after ``DEAD_ENDS_PER_TREE`` dead ends in a row.
The whole search stops after ``DEAD_ENDS`` in total (plus a bonus for each result), or when the
client has disconnected. In all three cases, ``is_cut`` is True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from innkeeper.domain.amounts import gives
from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery
from innkeeper.scheduling.candidates.plans import SlotPlan, plan_of
from innkeeper.scheduling.candidates.slots import Slots, classes_in_several
from innkeeper.snapshot.providers import ProviderTable

DEAD_ENDS_PER_TREE = 20_000
"""The limit of dead ends (picks that fail a check) in a tree since the tree's last result. A dead
end counts 1, plus 1 for every check at its level. A search of this length takes some hundredths
of a second."""
DEAD_ENDS = 50 * DEAD_ENDS_PER_TREE
"""The limit of dead ends for a whole request. Without it, many similar trees could all have the
maximum of dead ends. A search of this length takes a few seconds."""
DEAD_ENDS_PER_FIND = 100
"""Each result raises the limit ``DEAD_ENDS`` by this number."""

Picks = tuple[int, ...]
"""The row of each slot, in the order of the slots."""
Shuffle = Callable[[list[int]], None]
"""A function that shuffles a list in place."""
GoesOn = Callable[[], bool]
"""A function that returns whether the client still waits for the response."""
LOOK_UP_EVERY = 256
"""The number of dead ends after which the search calls ``GoesOn`` again."""


class Search:
    """A search for the candidates of one query, tree by tree."""

    def __init__(
        self,
        table: ProviderTable,
        query: CandidateQuery,
        slots: Slots,
        shuffle: Shuffle | None = None,
        goes_on: GoesOn = lambda: True,
    ) -> None:
        self.table = table
        self.query = query
        self.slots = slots.all
        self.together = slots.together
        self.is_cut = False
        self._shuffle = shuffle
        self._goes_on = goes_on
        self._suffixes = [slot.suffix for slot in slots.all]
        self.sharing = table.forest.sharing
        self._lent_walked: set[tuple[frozenset[int], ...]] = set()
        self._found_lent: set[Picks] = set()
        self.several = classes_in_several(slots.all)
        self._dead_ends = 0
        self._plans: dict[tuple[int, ...], SlotPlan] = {}

    def of_tree(self, tree: int) -> Iterator[Picks]:
        """Yield all valid choices for this tree that earlier trees have not yielded."""
        if not self._goes_on():
            self.is_cut = True
            return
        options = [slot.options(tree) for slot in self.slots]
        is_lent_known = self._knows_lent_choices(options)
        if is_lent_known and all(map(self.sharing.issuperset, options)):
            return
        if not (self._can_be_apart(options) and self._is_enough(options)):
            return
        if self._shuffle is not None:
            for each in options:
                self._shuffle(each)
        walk = _Walk(self, self._plan(options), options, leaves_lent=is_lent_known)
        for picks in walk.choices():
            if self._is_known(picks):
                walk.count_dead_ends(1)
            else:
                self._dead_ends -= DEAD_ENDS_PER_FIND
                yield picks
        self.is_cut |= walk.is_cut

    def _knows_lent_choices(self, options: Sequence[Sequence[int]]) -> bool:
        """Return whether an earlier tree had the same sharing providers as options for each slot.

        If so, the search of the earlier tree found all choices that consist of sharing providers
        only. Such choices do not depend on the tree. If not, the options are recorded for later
        trees.
        """
        if not self.sharing:
            return False
        lent = tuple(self.sharing.intersection(each) for each in options)
        if not all(lent):
            return False
        is_known = lent in self._lent_walked
        self._lent_walked.add(lent)
        return is_known

    def _plan(self, options: Sequence[Sequence[int]]) -> SlotPlan:
        # Slots with few options come first, to find dead ends early. The slots of the unsuffixed
        # group stay together, because their traits are checked when all of them are filled.
        is_suffixed = [suffix != UNSUFFIXED for suffix in self._suffixes]
        slots = range(len(options))
        order = tuple(sorted(slots, key=lambda at: (is_suffixed[at], len(options[at]))))
        plan = self._plans.get(order)
        if plan is None:
            plan = plan_of(self.query, self.slots, self.together, self.table.forest, order)
            self._plans[order] = plan
        return plan

    def _is_known(self, picks: Picks) -> bool:
        """Return whether a choice has only sharing providers and was found in an earlier tree."""
        if not self.sharing.issuperset(picks):
            return False
        if picks in self._found_lent:
            return True
        self._found_lent.add(picks)
        return False

    def may_go_on(self, count: int, in_a_row: int) -> bool:
        """Count dead ends, and return whether to continue in this tree.

        A dead end is a pick that fails a check. ``in_a_row`` is the number of dead ends in the tree
        since its last result.
        """
        before = self._dead_ends // LOOK_UP_EVERY
        self._dead_ends += count
        if in_a_row >= DEAD_ENDS_PER_TREE or self._dead_ends >= DEAD_ENDS:
            return False
        return before == self._dead_ends // LOOK_UP_EVERY or self._goes_on()

    def _is_enough(self, options: Sequence[Sequence[int]]) -> bool:
        """Return whether the options together have enough free capacity for each class.

        The function compares only classes that several slots need. With too little capacity, the
        search would try all combinations in vain.
        """
        for name in self.several:
            takers = [at for at, slot in enumerate(self.slots) if name in slot.amounts]
            amount = sum(self.slots[at].amounts[name] for at in takers)
            rows = list(set().union(*(options[at] for at in takers)))
            if self.table.free[name][rows].sum() < amount:
                return False
        return True

    def _can_be_apart(self, options: Sequence[Sequence[int]]) -> bool:
        """Return whether each suffixed group can have its own provider, if the query requires this.

        The check is a bipartite matching by augmenting paths. Without this check, a search for
        eight groups with seven providers has forty thousand dead ends.
        """
        if not self.query.is_isolated:
            return True
        holder: dict[int, int] = {}
        groups = [at for at, suffix in enumerate(self._suffixes) if suffix != UNSUFFIXED]
        return all(_place(at, options, holder, set()) for at in groups)


def _place(
    at: int, options: Sequence[Sequence[int]], holder: dict[int, int], seen: set[int]
) -> bool:
    for row in options[at]:
        if row in seen:
            continue
        seen.add(row)
        if row not in holder or _place(holder[row], options, holder, seen):
            holder[row] = at
            return True
    return False


class _Walk:
    """The search in one tree: the rows picked so far, and the amounts taken from them."""

    def __init__(
        self, search: Search, plan: SlotPlan, options: Sequence[Sequence[int]], *, leaves_lent: bool
    ) -> None:
        self.is_cut = False
        self._search = search
        self._plan = plan
        self._options = [options[at] for at in plan.order]
        self._rows: list[int] = []
        self._sums: dict[tuple[int, str], int] = {}
        self._dead_ends = 0
        self._leaves_lent = leaves_lent
        self._last_own = [row for row in self._options[-1] if row not in search.sharing]

    def choices(self, level: int = 0) -> Iterator[Picks]:
        """Yield all choices that extend the present picks. A choice has one row per slot.

        With ``leaves_lent``, choices that consist of sharing providers only are left out.
        """
        if level == len(self._options):
            self._dead_ends = 0
            yield tuple([self._rows[at] for at in self._plan.place])
            return
        for row in self._options_at(level):
            if self._take(level, row):
                yield from self.choices(level + 1)
                self._drop()
            else:
                self.count_dead_ends(1 + len(self._plan.checks[level]))
            if self.is_cut:
                return

    def _options_at(self, level: int) -> Sequence[int]:
        is_last = level + 1 == len(self._options)
        if self._leaves_lent and is_last and self._search.sharing.issuperset(self._rows):
            return self._last_own
        return self._options[level]

    def count_dead_ends(self, count: int) -> None:
        """Count dead ends. If there are too many, the search in this tree ends."""
        self._dead_ends += count
        self.is_cut = not self._search.may_go_on(count, self._dead_ends)

    def _take(self, level: int, row: int) -> bool:
        """Add a row to the picks if all checks pass. Return whether the row was added."""
        rows = self._rows
        rows.append(row)
        self._add(level, row, 1)
        if self._has_room(level, row):
            for check in self._plan.checks[level]:
                if not check(rows):
                    break
            else:
                return True
        self._drop()
        return False

    def _drop(self) -> None:
        row = self._rows.pop()
        self._add(len(self._rows), row, -1)

    def _add(self, level: int, row: int, sign: int) -> None:
        for name, amount in self._plan.meeting[level]:
            key = (row, name)
            self._sums[key] = self._sums.get(key, 0) + sign * amount

    def _has_room(self, level: int, row: int) -> bool:
        """Return whether the provider has room for the sums of the amounts picked from it."""
        table = self._search.table
        for name, _ in self._plan.meeting[level]:
            total = self._sums[row, name]
            if total > table.free[name][row] or total > table.max_units[name][row]:
                return False
        return level + 1 < len(self._options) or self._are_sums_given()

    def _are_sums_given(self) -> bool:
        """Return whether the unit rules allow the sums of amounts on each provider.

        A claim makes one allocation per provider and class. The unit rules may allow each amount
        alone, but not their sum. For example, each amount is ``min_unit``, but the sum is not a
        multiple of ``step_size``.
        """
        table = self._search.table
        for row, meeting in zip(self._rows, self._plan.meeting, strict=True):
            for name, _ in meeting:
                units = (table.min_units, table.max_units, table.step_sizes)
                least, most, step = (each[name][row] for each in units)
                if not gives(least, most, step, self._sums[row, name]):
                    return False
        return True
