"""Give a code to each set of aggregates, and keep the aggregates' metadata.

A host is in a set of aggregates. There are many hosts, but few distinct sets. Conditions on
metadata are therefore evaluated once per set.

Always true: code 0 is the empty set. A code stands for the same set until the next call of
:meth:`AggregateSets.keep_codes`. The number of unused codes is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from innkeeper.domain.numerals import number_of
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.codes import SPARE, Codes, codes_max, renumbered

Metadata = Mapping[str, str]
Verdict = Callable[[Sequence[Metadata]], bool]
NONE = 0
MULTIPLIER_MAX = 1e9
"""The largest multiplier, as in the settings. With larger multipliers, the weights of other
weighers would lose precision in the sum."""


class AggregateSets:
    """Sets of aggregates by code, and the aggregates' metadata.

    ``version`` counts new sets and changes of metadata.
    """

    def __init__(self) -> None:
        self._codes: dict[frozenset[int], int] = {frozenset(): NONE}
        self._sets: list[frozenset[int]] = [frozenset()]
        self._metadata: dict[int, Metadata] = {}
        self._by_code: list[tuple[Metadata, ...]] = [()]
        self._multipliers: dict[str, npt.NDArray[np.float64] | None] = {}
        self._mentions: dict[str, bool] = {}
        self._codes_max = SPARE
        self.version = 0

    @property
    def has_many_codes(self) -> bool:
        """Whether there are so many codes that :meth:`keep_codes` should be called."""
        return len(self._sets) > self._codes_max

    def keep_codes(self, live: Iterable[int]) -> Codes:
        """Remove all codes except code 0 and those in ``live``.

        Return the new codes, indexed by old code.
        """
        kept = [NONE, *(code for code in live if code != NONE)]
        found = renumbered(kept, len(self._sets))
        self._sets = [self._sets[code] for code in kept]
        self._codes = {each: code for code, each in enumerate(self._sets)}
        self._codes_max = codes_max(kept)
        there = frozenset().union(*self._sets)
        self._metadata = {each: self._metadata[each] for each in self._metadata if each in there}
        self._by_code = [self._metadata_of(each) for each in self._sets]
        self._forget()
        return found

    @property
    def are_there(self) -> bool:
        """Whether any host was ever in an aggregate."""
        return len(self._sets) > 1

    def code(self, ids: frozenset[int]) -> int:
        """Return the code of a set of aggregates. A new set gets the next code."""
        code = self._codes.get(ids)
        if code is None:
            code = self._codes[ids] = len(self._sets)
            self._sets.append(ids)
            self._by_code.append(self._metadata_of(ids))
            self._forget()
        return code

    def ids(self, code: int) -> frozenset[int]:
        """Return the ids of the aggregates in the set with this code."""
        return self._sets[code]

    def metadata(self, code: int) -> tuple[Metadata, ...]:
        """Return the metadata of the aggregates in the set with this code, in order of ids."""
        return self._by_code[code]

    def set_metadata(self, aggregate_id: int, metadata: Metadata) -> None:
        """Replace an aggregate's metadata.

        The caller must call :meth:`HostTable.note` for all hosts in the aggregate.
        """
        if self._metadata.get(aggregate_id) != metadata:
            self._metadata[aggregate_id] = dict(metadata)
            self._by_code = [self._metadata_of(each) for each in self._sets]
            self._forget()

    def _forget(self) -> None:
        self.version += 1
        self._multipliers.clear()
        self._mentions.clear()

    def mentions(self, prefix: str) -> bool:
        """Return whether any aggregate has a key with this prefix."""
        if prefix not in self._mentions:
            keys = (key for each in self._metadata.values() for key in each)
            self._mentions[prefix] = any(key.startswith(prefix) for key in keys)
        return self._mentions[prefix]

    def _metadata_of(self, ids: frozenset[int]) -> tuple[Metadata, ...]:
        return tuple(self._metadata.get(each, {}) for each in sorted(ids))

    def judge(self, verdict: Verdict, codes: Codes) -> Mask:
        """Return for each code the result of ``verdict`` for the metadata of its aggregates."""
        if codes.shape[0] == 1:
            # For a single row, such as a row that was just picked, only one set is evaluated.
            one: Mask = np.array([verdict(self._by_code[int(codes[0])])], dtype=np.bool_)
            return one
        by_code = np.fromiter((verdict(each) for each in self._by_code), dtype=np.bool_)
        judged: Mask = by_code[codes]
        return judged

    def multipliers(self, key: str) -> npt.NDArray[np.float64] | None:
        """Return for each code the smallest number that its aggregates have under ``key``, or NaN.

        Returns None if no aggregate has such a number. Invalid numbers and too large numbers are
        ignored.
        """
        if key not in self._multipliers:
            found = np.array([_least(each, key) for each in self._by_code])
            self._multipliers[key] = None if np.isnan(found).all() else found
        return self._multipliers[key]


def _least(metadata: Sequence[Metadata], key: str) -> float:
    numbers = (number_of(each[key]) for each in metadata if key in each)
    fit = (each for each in numbers if each is not None and abs(each) <= MULTIPLIER_MAX)
    return min(fit, default=np.nan)
