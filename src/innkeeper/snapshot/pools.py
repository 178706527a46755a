"""Define the pool table, with columns of pools and the sets of aggregates that hosts are in.

:mod:`innkeeper.domain.placement` defines which hosts a pool serves. Hosts in the same aggregates
borrow from the same pools. Each host therefore has a code for the set of aggregates of its tree,
and pools are evaluated once per set.

Always true: code 0 is the empty set, whose hosts borrow nothing. A code stands for the same set
until the next call of :meth:`PoolTable.keep_codes`. The number of unused codes is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.snapshot.amounts import Amount, AmountTable, Mask, Rows
from innkeeper.snapshot.codes import SPARE, Codes, codes_max, renumbered

NOBODY = 0
"""The code of the empty set of aggregates, and the number of the empty group of pools."""


@dataclass(frozen=True, slots=True)
class Lenders:
    """The pools that lend one class, in groups.

    ``groups[of[code]]`` has the rows of the pools that lend to hosts with this code, in order of
    ids. There are only a few groups, because many codes have the same pools. The first group is
    empty. ``rows`` concatenates the rows of the groups after the first. ``starts`` has the position
    in ``rows`` where each of these groups begins. ``near`` has the pools in each aggregate.
    """

    of: Codes
    groups: tuple[tuple[HostIndex, ...], ...]
    rows: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    near: Mapping[str, Sequence[HostIndex]]


class PoolTable(AmountTable):
    """The columns of all pools, and the codes of sets of aggregates."""

    def __init__(self) -> None:
        super().__init__()
        self.uuids: list[ProviderUuid] = self._add_list(str)
        self.aggregates: list[frozenset[str]] = self._add_list(frozenset)
        self._lenders: dict[str, Lenders] = {}
        self._served: dict[int, Mask] = {}
        self._codes: dict[frozenset[str], int] = {frozenset(): NOBODY}
        self._sets = list(self._codes)
        self._codes_max = SPARE

    # -- codes of sets of aggregates -------------------------------------------------------

    def code(self, aggregates: frozenset[str]) -> int:
        """Return the code of a set of aggregates. A new set gets the next code."""
        code = self._codes.get(aggregates)
        if code is None:
            code = self._codes[aggregates] = len(self._sets)
            self._sets.append(aggregates)
        return code

    def aggregates_of(self, code: int) -> frozenset[str]:
        """Return the set of aggregates with this code."""
        return self._sets[code]

    @property
    def code_count(self) -> int:
        """The number of codes, including unused ones."""
        return len(self._sets)

    @property
    def has_many_codes(self) -> bool:
        """Whether there are so many codes that :meth:`keep_codes` should be called."""
        return self.code_count > self._codes_max

    def keep_codes(self, live: Iterable[int]) -> Codes:
        """Remove all codes except code 0 and those in ``live``.

        Return the new codes, indexed by old code.
        """
        kept = [NOBODY, *(code for code in live if code != NOBODY)]
        numbers = renumbered(kept, self.code_count)
        self._sets = [self._sets[code] for code in kept]
        self._codes = {each: code for code, each in enumerate(self._sets)}
        self._codes_max = codes_max(kept)
        self.regroup()
        return numbers

    # -- lending ---------------------------------------------------------------------------

    def ties(self, among: Collection[ProviderId] | None) -> object:
        """Return a value that changes if a pool begins or stops lending a class to a set of hosts.

        A pool lends its classes to the hosts in the pool's aggregates. Only the pools in ``among``
        are compared. The value also changes if any pool is added or removed.
        """
        rows = self.index_of
        compared = rows if among is None else [each for each in among if each in rows]
        lending = {
            provider_id: (
                self.aggregates[rows[provider_id]],
                frozenset(name for name, most in self.max_units.items() if most[rows[provider_id]]),
            )
            for provider_id in compared
        }
        return self.row_count, lending

    def regroup(self) -> None:
        """Discard the cached groups, and begin a new epoch."""
        self._lenders.clear()
        self._served.clear()
        self._begin_epoch()

    def serving(self, code: int) -> frozenset[ProviderId]:
        """Return the pools that serve hosts with this code, for any class."""
        return frozenset(
            provider_id
            for provider_id, row in self.index_of.items()
            if self.aggregates[row] & self._sets[code]
        )

    def served_by(self, rows: Collection[int]) -> Mask:
        """Return for each code whether at least one of these pools serves its hosts."""
        served: Mask = np.zeros(self.code_count, dtype=np.bool_)
        for row in rows:
            mine = self._served.get(row)
            if mine is None or mine.shape[0] < self.code_count:
                aggregates = self.aggregates[row]
                mine = np.array([not aggregates.isdisjoint(each) for each in self._sets])
                self._served[row] = mine
            served |= mine
        return served

    def served_by_all(self, pools: Iterable[ProviderId]) -> Mask:
        """Return for each code whether all of these pools serve its hosts.

        A provider that is not a pool serves no host.
        """
        served: Mask = np.ones(self.code_count, dtype=np.bool_)
        for pool in pools:
            row = self.index_of.get(pool)
            served &= self.served_by(() if row is None else (row,))
        return served

    def lenders(self, name: str) -> Lenders | None:
        """Return the pools that lend a class, or None if there are none."""
        if name not in self.free:
            return None
        found = self._lenders.get(name)
        if found is None or found.of.shape[0] < self.code_count:
            found = self._lenders[name] = self._find_lenders(name, found)
        return found if len(found.groups) > 1 else None

    def _find_lenders(self, name: str, known: Lenders | None) -> Lenders:
        """Compute the pools that lend a class. With ``known``, only new sets are computed."""
        near = self._near(name) if known is None else known.near
        groups: tuple[tuple[HostIndex, ...], ...] = ((),) if known is None else known.groups
        of: Codes = np.zeros(0, dtype=np.int32) if known is None else known.of
        numbers = {group: number for number, group in enumerate(groups)}
        more: list[int] = []
        for aggregates in self._sets[of.shape[0] :]:
            lending = {row for each in aggregates for row in near.get(each, ())}
            # Pools are sorted by id instead of row, because moved rows must not affect random
            # draws.
            group = tuple(sorted(lending, key=lambda row: int(self.provider_ids[row])))
            more.append(numbers.setdefault(group, len(numbers)))
        groups = tuple(numbers)
        rows = np.array([row for group in groups for row in group], dtype=np.intp)
        starts = np.cumsum([len(group) for group in groups], dtype=np.intp)[:-1]
        return Lenders(np.append(of, np.array(more, dtype=np.int32)), groups, rows, starts, near)

    def _near(self, name: str) -> Mapping[str, Sequence[HostIndex]]:
        """Return for each aggregate the pools that have inventory of a class."""
        found: dict[str, list[HostIndex]] = {}
        for row in self.index_of.values():
            if self.max_units[name][row] > 0:
                for aggregate in self.aggregates[row]:
                    found.setdefault(aggregate, []).append(row)
        return found

    # -- amounts ---------------------------------------------------------------------------

    def have(self, name: str) -> bool:
        """Return whether any pool has inventory of a class."""
        return name in self.free and bool(self.max_units[name].any())

    def fits(self, name: str, amount: int, rows: Rows) -> Mask:
        """Return for each of these pools whether it can lend ``amount``."""
        fits: Mask = self.free[name][rows] >= amount
        given = self.gives(name, amount, rows)
        if given is not None:
            fits &= given
        return fits

    def able(self, name: str, amount: int) -> Mask | None:
        """Return for each code whether a pool can lend ``amount``, or None if no pool lends it."""
        lenders = self.lenders(name)
        if lenders is None:
            return None
        fits = self.fits(name, amount, lenders.rows)
        by_group: Mask = np.zeros(len(lenders.groups), dtype=np.bool_)
        by_group[1:] = np.logical_or.reduceat(fits, lenders.starts)
        able: Mask = by_group[lenders.of]
        return able

    def most(self, name: str) -> Amount | None:
        """Return for each code the largest free amount in one pool.

        Return None if no pool lends the class.
        """
        lenders = self.lenders(name)
        if lenders is None:
            return None
        by_group: Amount = np.zeros(len(lenders.groups))
        by_group[1:] = np.maximum.reduceat(self.free[name][lenders.rows], lenders.starts)
        most: Amount = by_group[lenders.of]
        return most

    def lending(self, name: str, codes: Mask) -> Mask:
        """Return for each pool whether it lends a class to any of the selected hosts.

        ``codes`` is a mask by code, which selects the hosts whose code is True.
        """
        found: Mask = np.zeros(self.row_count, dtype=np.bool_)
        lenders = self.lenders(name)
        if lenders is not None:
            by_group: Mask = np.zeros(len(lenders.groups), dtype=np.bool_)
            by_group[lenders.of[codes]] = True
            sizes = np.diff(lenders.starts, append=lenders.rows.shape[0])
            found[lenders.rows[np.repeat(by_group[1:], sizes)]] = True
        return found

    def best(self, name: str, amount: int, code: int) -> Sequence[HostIndex]:
        """Return the pools that can best lend ``amount`` of a class to hosts with this code.

        Of the pools that can lend this amount, these are the pools with the most free capacity.
        """
        lenders = self.lenders(name)
        group = () if lenders is None else lenders.groups[lenders.of[code]]
        given = self.gives(name, amount, slice(None))
        able = [
            row for row in group if self.free[name][row] >= amount and (given is None or given[row])
        ]
        most = max((self.free[name][row] for row in able), default=0.0)
        return [row for row in able if self.free[name][row] == most]
