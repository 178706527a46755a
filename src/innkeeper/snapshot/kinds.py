"""Kinds of hosts: what sets of traits and resource classes there are, and how rare each is.

There are many hosts and few kinds, so what is said of a kind is said of all its hosts. A
table finds its kinds once, when somebody asks for them, and keeps them; then only edited rows
are looked at again.

Always true after :meth:`Kinds.refresh`: they are the kinds of the table as it is now, and the
numbers are the same to the last bit, whatever the table showed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Amount, AmountTable, Mask, Rows

Weights = npt.NDArray[np.float64]

ALONE_MAX = 128
"""So many edited rows are looked at one by one; beyond, looking at all of them is as fast."""
ASKED_MAX = 64
"""What this many requests leave unused is remembered; a cloud has fewer shapes in use."""


class Kinds:
    """The kinds of one table's hosts. ``version`` moves whenever one, or its rarity, does."""

    def __init__(self, hosts: AmountTable) -> None:
        self.version = 0
        self._place = 0
        self._look_at_all(hosts)

    def refresh(self, hosts: AmountTable) -> None:
        """Bring this up to what the table shows now."""
        sizes = (hosts.epoch, len(hosts.traits), len(hosts.free))
        edited = set(hosts.edits[self._place :]) if sizes == self._sizes else None
        if edited is None or len(edited) > ALONE_MAX:
            self._look_at_all(hosts)
            return
        self._place = len(hosts.edits)
        moved = [self._look_at(hosts, index) for index in edited]
        if any(moved):
            self._weigh()

    def unused(self, asked: frozenset[str], rows: Rows) -> Weights:
        """How dear it is to leave unused what hosts have and nobody asked for, by rows.

        Each trait and class counts by the share of hosts that do not have it: what all have
        is nothing, what one alone has is nearly 1.
        """
        by_kind = self._unused.get(asked)
        if by_kind is None:
            if len(self._unused) >= ASKED_MAX:
                self._unused.clear()
            left = np.array([name not in asked for name in self._names], dtype=np.bool_)
            # Whole numbers up to here, so that the order of the sum cannot matter.
            by_kind = (self._has & left).astype(np.float64) @ self._lacking / self._most
            self._unused[asked] = by_kind
        return by_kind[self._codes[rows]]

    def _look_at_all(self, hosts: AmountTable) -> None:
        self._sizes = (hosts.epoch, len(hosts.traits), len(hosts.free))
        self._place = len(hosts.edits)
        self._names = [*hosts.traits, *hosts.free]
        has = np.zeros((len(self._names), hosts.row_count), dtype=np.bool_)
        for number, column in enumerate(_columns(hosts.traits, hosts.free, hosts.used)):
            has[number] = column
        self._codes, self._has = _distinct(has)
        self._numbers = {row.tobytes(): number for number, row in enumerate(self._has)}
        self._counts = np.bincount(self._codes, minlength=self._has.shape[0]).tolist()
        self._weigh()

    def _look_at(self, hosts: AmountTable, index: int) -> bool:
        """Find the kind of one host again; whether it is another one."""
        has = np.array(_row(hosts.traits, hosts.free, hosts.used, index), dtype=np.bool_)
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
        self._unused: dict[frozenset[str], Weights] = {}


def _columns(
    traits: Mapping[str, Mask], free: Mapping[str, Amount], used: Mapping[str, Amount]
) -> Iterable[Mask]:
    yield from traits.values()
    for name, column in free.items():
        yield column + used[name] > 0.0


def _row(
    traits: Mapping[str, Mask], free: Mapping[str, Amount], used: Mapping[str, Amount], index: int
) -> Sequence[Any]:
    classes = (column[index] + used[name][index] > 0.0 for name, column in free.items())
    return [*(column[index] for column in traits.values()), *classes]


def _distinct(has: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Number the different columns of a table of truths: each one's number, and its truths."""
    if not has.size:
        codes = np.zeros(has.shape[1], dtype=np.intp)
        return codes, np.zeros((1, has.shape[0]), dtype=np.bool_)
    packed = np.ascontiguousarray(np.packbits(has, axis=0).T)
    # One value per host; rows of bytes would be sorted column by column, which takes for ever.
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, codes = np.unique(whole, return_index=True, return_inverse=True)
    return codes.ravel(), np.ascontiguousarray(has[:, first].T)
