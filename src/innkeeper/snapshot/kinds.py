"""Find the kinds of hosts, and compute the rarity of each trait and resource class.

A kind is a distinct set of traits and resource classes. There are many hosts, but few kinds. The
kinds are computed at the first use. Later, only edited rows are read again.

Always true after :meth:`Kinds.refresh`: the kinds match the present table. The rarities do not
depend on the table's history, not even in the last bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import AmountTable, Rows

Weights = npt.NDArray[np.float64]

ALONE_MAX = 128
"""The maximum number of edited rows that are read one by one. For more rows, reading all rows is as
fast."""
CACHED_MAX = 64
"""The maximum number of cached results of :meth:`Kinds.unused`. Clouds need fewer."""


class Kinds:
    """The kinds of one table's hosts. ``version`` counts changes of kinds and rarities."""

    def __init__(self, hosts: AmountTable) -> None:
        self.version = 0
        self._place = 0
        self._look_at_all(hosts)

    def refresh(self, hosts: AmountTable) -> None:
        """Update the kinds to the present table."""
        sizes = (hosts.epoch, len(hosts.traits), len(hosts.free))
        edited = set(hosts.edits[self._place :]) if sizes == self._sizes else None
        if edited is None or len(edited) > ALONE_MAX:
            self._look_at_all(hosts)
            return
        self._place = len(hosts.edits)
        moved = [self._look_at(hosts, index) for index in edited]
        if any(moved):
            self._weigh()

    def unused(self, requested: frozenset[str], rows: Rows, *, by_rarity: bool = True) -> Weights:
        """Return for each row the sum of the rarities of traits and classes not in ``requested``.

        The rarity of a trait or class is the share of hosts without it. It is 0 if all hosts have
        the trait, and nearly 1 if only one host has it. Without ``by_rarity``, each of these traits
        and classes counts 1. The result then does not depend on other hosts.
        """
        by_kind = self._unused.get((requested, by_rarity))
        if by_kind is None:
            if len(self._unused) >= CACHED_MAX:
                self._unused.clear()
            left = np.array([name not in requested for name in self._names], dtype=np.bool_)
            # The sum is over whole numbers, so their order does not matter.
            has_unused = (self._has & left).astype(np.float64)
            rare = has_unused @ self._lacking / self._most if by_rarity else has_unused.sum(axis=1)
            by_kind = self._unused[requested, by_rarity] = rare
        return by_kind[self._codes[rows]]

    def _look_at_all(self, hosts: AmountTable) -> None:
        self._sizes = (hosts.epoch, len(hosts.traits), len(hosts.free))
        self._place = len(hosts.edits)
        self._names = [*hosts.traits, *hosts.free]
        has = np.zeros((len(self._names), hosts.row_count), dtype=np.bool_)
        for number, column in enumerate(hosts.traits.values()):
            has[number] = column
        for number, (name, column_free) in enumerate(hosts.free.items(), len(hosts.traits)):
            has[number] = column_free + hosts.used[name] > 0.0
        self._codes, self._has = _distinct(has)
        self._numbers = {row.tobytes(): number for number, row in enumerate(self._has)}
        self._counts = np.bincount(self._codes, minlength=self._has.shape[0]).tolist()
        self._weigh()

    def _look_at(self, hosts: AmountTable, index: int) -> bool:
        """Update the kind of one host, and return whether the kind changed."""
        traits = (column[index] for column in hosts.traits.values())
        classes = (free[index] + hosts.used[name][index] > 0.0 for name, free in hosts.free.items())
        has = np.array([*traits, *classes], dtype=np.bool_)
        code = self._numbers.setdefault(has.tobytes(), len(self._numbers))
        before = int(self._codes[index])
        if code == before:
            return False
        if code == len(self._counts):
            self._has = np.vstack([self._has, has])
            self._counts.append(0)
        self._counts[before] -= 1
        self._counts[code] += 1
        self._codes[index] = code
        return True

    def _weigh(self) -> None:
        self.version += 1
        counts = np.array(self._counts, dtype=np.float64)
        self._lacking: Weights = counts.sum() - counts @ self._has
        self._most = max(1.0, float(counts.sum()))
        self._unused: dict[tuple[frozenset[str], bool], Weights] = {}


def _distinct(has: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Number the distinct columns of a boolean matrix.

    Return the number of each column, and a matrix with the distinct columns as rows.
    """
    if not has.size:
        codes = np.zeros(has.shape[1], dtype=np.intp)
        return codes, np.zeros((1, has.shape[0]), dtype=np.bool_)
    packed = np.ascontiguousarray(np.packbits(has, axis=0).T)
    # The bytes of each host become one value, because sorting by many columns would be very slow.
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, codes = np.unique(whole, return_index=True, return_inverse=True)
    return codes.ravel(), np.ascontiguousarray(has[:, first].T)
