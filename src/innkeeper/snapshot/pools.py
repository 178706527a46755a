"""Pools as columns, and which hosts they lend to: a small table beside that of the hosts.

Whom a pool serves is said in :mod:`innkeeper.domain.placement`. Hosts of the same aggregates
borrow of the same pools, so a host's row holds one code for the set of its tree's aggregates,
and pools are looked at once for each set rather than once for each host.

Always true: code 0 is the set without aggregates, to which nobody lends; a code stands for one
set until :meth:`PoolTable.keep_codes`. Codes outlive the hosts that they were made for, but
there are never many more of them than hosts need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.snapshot.amounts import Amount, AmountTable, Mask

Codes = npt.NDArray[np.int32]
NOBODY = 0
"""The code of a set without aggregates, and the number of the group without pools."""

CODES_SPARE = 64
"""So many codes may be out of use, and as many as there were in use when last counted."""


@dataclass(frozen=True, slots=True)
class Lenders:
    """Who lends one class: ``groups[of[code]]`` are the rows of the pools, in order of ids.

    Many sets of aggregates come to few groups of pools. The first group is empty; ``rows`` are
    those of all others, one after the other, from ``starts`` on. ``near`` has the pools of
    each aggregate.
    """

    of: Codes
    groups: tuple[tuple[HostIndex, ...], ...]
    rows: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    near: Mapping[str, Sequence[HostIndex]]


class PoolTable(AmountTable):
    """Columns of the pools. A table without rows means that nobody borrows anything."""

    def __init__(self) -> None:
        super().__init__()
        self.uuids: list[ProviderUuid] = self._add_list(str)
        self.aggregates: list[frozenset[str]] = self._add_list(frozenset)
        self._lenders: dict[str, Lenders] = {}
        self._served: dict[int, Mask] = {}
        self._codes: dict[frozenset[str], int] = {frozenset(): NOBODY}
        self._sets = list(self._codes)
        self._codes_max = CODES_SPARE

    # -- codes of sets of aggregates -------------------------------------------------------

    def code(self, aggregates: frozenset[str]) -> int:
        """The code of a set of aggregates; a new one gets the next."""
        code = self._codes.get(aggregates)
        if code is None:
            code = self._codes[aggregates] = len(self._sets)
            self._sets.append(aggregates)
        return code

    def aggregates_of(self, code: int) -> frozenset[str]:
        """The set that a code stands for."""
        return self._sets[code]

    @property
    def code_count(self) -> int:
        """How many codes there are, in use or not."""
        return len(self._sets)

    @property
    def has_many_codes(self) -> bool:
        """Whether it is time to ask which codes are in use, and to keep no others."""
        return self.code_count > self._codes_max

    def keep_codes(self, live: Iterable[int]) -> Codes:
        """Keep these codes alone, and give them new numbers; by the old ones, these are given.

        The set without aggregates keeps its own.
        """
        kept = [NOBODY, *(code for code in live if code != NOBODY)]
        numbers: Codes = np.zeros(self.code_count, dtype=np.int32)
        numbers[kept] = np.arange(len(kept), dtype=np.int32)
        self._sets = [self._sets[code] for code in kept]
        self._codes = {each: code for code, each in enumerate(self._sets)}
        self._codes_max = 2 * len(kept) + CODES_SPARE
        self.regroup()
        return numbers

    # -- who lends to whom -----------------------------------------------------------------

    def ties(self) -> object:
        """What decides who lends to whom; to be compared with what it was."""
        return {
            provider_id: (row, self.aggregates[row], self._classes_of(row))
            for provider_id, row in self.index_of.items()
        }

    def _classes_of(self, row: HostIndex) -> frozenset[str]:
        return frozenset(name for name, most in self.max_units.items() if most[row] > 0)

    def regroup(self) -> None:
        """Have it worked out anew who lends to whom, and what anybody made of it."""
        self._lenders.clear()
        self._served.clear()
        self._begin_epoch()

    def serving(self, code: int) -> frozenset[ProviderId]:
        """The pools that serve hosts with this code, whatever they have."""
        return frozenset(
            provider_id
            for provider_id, row in self.index_of.items()
            if self.aggregates[row] & self._sets[code]
        )

    def served_by(self, rows: Collection[int]) -> Mask:
        """For each code, whether one of these pools serves hosts with it."""
        served: Mask = np.zeros(self.code_count, dtype=np.bool_)
        for row in rows:
            mine = self._served.get(row)
            if mine is None or mine.shape[0] < self.code_count:
                aggregates = self.aggregates[row]
                mine = np.array([not aggregates.isdisjoint(each) for each in self._sets])
                self._served[row] = mine
            served |= mine
        return served

    def lenders(self, name: str) -> Lenders | None:
        """Who lends a class; None if nobody does."""
        if name not in self.free:
            return None
        found = self._lenders.get(name)
        if found is None or found.of.shape[0] < self.code_count:
            found = self._lenders[name] = self._find_lenders(name, found)
        return found if len(found.groups) > 1 else None

    def _find_lenders(self, name: str, known: Lenders | None) -> Lenders:
        """Work out who lends a class, or only to sets that came since it was ``known``."""
        near = self._near(name) if known is None else known.near
        groups: tuple[tuple[HostIndex, ...], ...] = ((),) if known is None else known.groups
        of: Codes = np.zeros(0, dtype=np.int32) if known is None else known.of
        numbers = {group: number for number, group in enumerate(groups)}
        more: list[int] = []
        for aggregates in self._sets[of.shape[0] :]:
            lending = {row for each in aggregates for row in near.get(each, ())}
            # By their ids: rows move when others go, and a draw must not depend on that.
            group = tuple(sorted(lending, key=lambda row: int(self.provider_ids[row])))
            more.append(numbers.setdefault(group, len(numbers)))
        groups = tuple(numbers)
        sizes = [len(group) for group in groups]
        rows = np.array([row for group in groups for row in group], dtype=np.intp)
        return Lenders(
            np.append(of, np.array(more, dtype=np.int32)),
            groups,
            rows,
            np.cumsum(sizes, dtype=np.intp)[:-1],
            near,
        )

    def _near(self, name: str) -> Mapping[str, Sequence[HostIndex]]:
        """The pools that have a class, by their aggregates."""
        found: dict[str, list[HostIndex]] = {}
        for row in self.index_of.values():
            if self.max_units[name][row] > 0:
                for aggregate in self.aggregates[row]:
                    found.setdefault(aggregate, []).append(row)
        return found

    # -- what they have --------------------------------------------------------------------

    def able(self, name: str, amount: int) -> Mask | None:
        """For each code, whether a pool gives ``amount`` in one piece; None if nobody lends."""
        lenders = self.lenders(name)
        if lenders is None:
            return None
        fits: Mask = self.free[name] >= amount
        given = self.gives(name, amount, slice(None))
        if given is not None:
            fits &= given
        by_group: Mask = np.zeros(len(lenders.groups), dtype=np.bool_)
        by_group[1:] = np.logical_or.reduceat(fits[lenders.rows], lenders.starts)
        able: Mask = by_group[lenders.of]
        return able

    def most(self, name: str) -> Amount | None:
        """For each code, the most that one pool has left of a class; None if nobody lends."""
        lenders = self.lenders(name)
        if lenders is None:
            return None
        by_group: Amount = np.zeros(len(lenders.groups))
        by_group[1:] = np.maximum.reduceat(self.free[name][lenders.rows], lenders.starts)
        most: Amount = by_group[lenders.of]
        return most

    def best(self, name: str, amount: int, code: int) -> Sequence[HostIndex]:
        """The pools that have most left, of those that give ``amount`` to hosts of a code."""
        lenders = self.lenders(name)
        group = () if lenders is None else lenders.groups[lenders.of[code]]
        given = self.gives(name, amount, slice(None))
        able = [
            row for row in group if self.free[name][row] >= amount and (given is None or given[row])
        ]
        most = max((self.free[name][row] for row in able), default=0.0)
        return [row for row in able if self.free[name][row] == most]
