"""Keep the distinct values of a column, with indexes for queries.

Texts are ranked once for all comparisons, and items of lists are sorted once. New values are added
to the indexes at the next query.

Always true: a code is an index into ``values`` and never changes its meaning. Arrays by code have
one more entry at the end for ``NO_CODE``, which is -1.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Mask

NO_CODE = -1

Ranks = npt.NDArray[np.float64]

TRUE, FALSE = -2.0, -1.0
"""The ranks of booleans, which have no order. Ranks of texts are greater."""
FEW = 64
"""If there are at most this many texts, their ranks in other vocabularies are not cached. At most
this many new items of lists are inserted one by one."""
OTHERS_MAX = 16
"""The number of other vocabularies for which ranks are cached."""


class Vocabulary:
    """Values of any type by code. New values are appended to ``values``."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self._seen = 0
        self._ranks: Ranks = np.array([np.nan])
        self._texts: list[str] = []
        self._codes_in_order: list[int] = []
        self._lists: list[int] = []
        self._items: dict[str, _Items] = {}
        self._listed = 0
        self._among: WeakKeyDictionary[Vocabulary, tuple[int, Ranks]] = WeakKeyDictionary()

    def ranks(self) -> Ranks:
        """Return each code's rank: the text's rank, ``TRUE``, ``FALSE``, or NaN for other types."""
        if self._seen < len(self.values):
            self._rank()
        return self._ranks

    def _rank(self) -> None:
        start, self._seen = self._seen, len(self.values)
        ranks = np.full(self._seen + 1, np.nan)
        ranks[:start] = self._ranks[:start]
        texts: list[int] = []
        for code, value in enumerate(self.values[start:], start):
            if isinstance(value, str):
                texts.append(code)
            elif isinstance(value, bool):
                ranks[code] = TRUE if value else FALSE
            elif isinstance(value, list):
                self._lists.append(code)
        if texts:
            # The sort is fast, because most of the list is already in order.
            self._codes_in_order += texts
            self._codes_in_order.sort(key=self.values.__getitem__)
            self._texts = [self.values[code] for code in self._codes_in_order]
            ranks[self._codes_in_order] = np.arange(len(self._texts))
        self._ranks = ranks
        self._among.clear()

    def ranks_among(self, other: Vocabulary) -> Ranks:
        """Return for each code the rank that the text would have in the vocabulary ``other``.

        A text that is not in ``other`` gets a rank halfway between its two neighbours there.
        """
        mine, theirs = self.ranks(), other.ranks()
        if self is other or not self._texts:
            return mine
        found = self._among.get(other)
        if found is None or found[0] != len(theirs):
            ranks = mine.copy()
            ranks[self._codes_in_order] = [_place(each, other._texts) for each in self._texts]
            found = (len(theirs), ranks)
            if len(self._texts) > FEW:
                if len(self._among) == OTHERS_MAX:
                    self._among.clear()
                self._among[other] = found
        return found[1]

    @property
    def text_count(self) -> int:
        """The number of texts."""
        self.ranks()
        return len(self._texts)

    def are_lists(self) -> Mask | None:
        """Return for each code whether the value is a list, or None if no value is a list."""
        count = len(self.ranks())
        return _marked(count, self._lists) if self._lists else None

    def having(self, sought: Any) -> Mask:
        """Return for each code whether the value is a list that contains ``sought``."""
        count = len(self.ranks())
        if self._listed < len(self._lists):
            self._sort_items()
        items = self._items.get(_kind(sought))
        return _marked(count, [] if items is None else items.owners_of(sought))

    def _sort_items(self) -> None:
        fresh: dict[str, tuple[list[Any], list[int]]] = {}
        for code in self._lists[self._listed :]:
            for item in self.values[code]:
                # NaN items are left out, because NaN has no order.
                if isinstance(item, str | int | float) and item == item:  # noqa: PLR0124
                    items, owners = fresh.setdefault(_kind(item), ([], []))
                    items.append(item)
                    owners.append(code)
        self._listed = len(self._lists)
        for kind, (items, owners) in fresh.items():
            self._items.setdefault(kind, _Items()).add(items, owners)


class _Items:
    """The sorted items of many lists. All items are of one type.

    ``_owners`` has the codes of their lists.
    """

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._owners = np.zeros(0, dtype=np.int64)

    def add(self, items: list[Any], owners: list[int]) -> None:
        if len(items) <= FEW:
            # Sorting all items would take thousands of times as long.
            for item, owner in zip(items, owners, strict=True):
                place = bisect_right(self._items, item)
                self._items.insert(place, item)
                self._owners = np.insert(self._owners, place, owner)
            return
        whole = self._items + items
        order = sorted(range(len(whole)), key=whole.__getitem__)
        self._items = [whole[each] for each in order]
        self._owners = np.concatenate([self._owners, owners])[order].astype(np.int64)

    def owners_of(self, sought: Any) -> npt.NDArray[np.int64]:
        first, last = bisect_left(self._items, sought), bisect_right(self._items, sought)
        return self._owners[first:last]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        # In Python, True equals 1.
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _place(text: str, texts: list[str]) -> float:
    place = bisect_left(texts, text)
    return place if place < len(texts) and texts[place] == text else place - 0.5


def _marked(count: int, codes: Any) -> Mask:
    marked = np.zeros(count, dtype=np.bool_)
    marked[codes] = True
    return marked


def in_one_order(one: Vocabulary, other: Vocabulary) -> tuple[Ranks, Ranks]:
    """Return the ranks of the values of both vocabularies in a common order."""
    # If both have the same number of texts, the choice must still be stable, because ranks are
    # cached.
    if (one.text_count, id(one)) <= (other.text_count, id(other)):
        return one.ranks_among(other), other.ranks()
    return one.ranks(), other.ranks_among(one)
