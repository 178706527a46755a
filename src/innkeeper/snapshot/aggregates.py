"""Which aggregates hosts are in, as one code for each set of them, and what is said of those.

There are many hosts and few sets, so whoever judges by metadata judges each set once.

Always true: code 0 is the set without aggregates; a code stands for one set until
:meth:`AggregateSets.keep_codes`. There are never many more of them than hosts need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from innkeeper.domain.numerals import number_of
from innkeeper.snapshot.amounts import Mask

Codes = npt.NDArray[np.int32]
Metadata = Mapping[str, str]
Verdict = Callable[[Sequence[Metadata]], bool]
NONE = 0
CODES_SPARE = 64
"""So many codes may be out of use, and as many as there were in use when last counted."""
MULTIPLIER_MAX = 1e9
"""As in the settings: beyond it, sums of weights would lose what others weigh."""


class AggregateSets:
    """Sets of aggregates by their codes, and the aggregates' metadata."""

    def __init__(self) -> None:
        self._codes: dict[frozenset[int], int] = {frozenset(): NONE}
        self._sets: list[frozenset[int]] = [frozenset()]
        self._metadata: dict[int, Metadata] = {}
        self._told: list[tuple[Metadata, ...]] = [()]
        self._multipliers: dict[str, npt.NDArray[np.float64] | None] = {}
        self._mentions: dict[str, bool] = {}
        self._codes_max = CODES_SPARE
        self.version = 0
        """Counts sets that came and metadata that changed."""

    @property
    def has_many_codes(self) -> bool:
        """Whether it is time to ask which codes are in use, and to keep no others."""
        return len(self._sets) > self._codes_max

    def keep_codes(self, live: Iterable[int]) -> Codes:
        """Keep these codes alone, and give them new numbers; by the old ones, these are given.

        The set without aggregates keeps its own.
        """
        kept = [NONE, *(code for code in live if code != NONE)]
        found: Codes = np.zeros(len(self._sets), dtype=np.int32)
        found[kept] = np.arange(len(kept), dtype=np.int32)
        self._sets = [self._sets[code] for code in kept]
        self._codes = {each: code for code, each in enumerate(self._sets)}
        self._codes_max = 2 * len(kept) + CODES_SPARE
        there = frozenset().union(*self._sets)
        self._metadata = {each: said for each, said in self._metadata.items() if each in there}
        self._told = [self._tell(each) for each in self._sets]
        self._forget()
        return found

    @property
    def are_there(self) -> bool:
        """Whether any host ever was in one."""
        return len(self._sets) > 1

    def code(self, ids: frozenset[int]) -> int:
        """The code of a set of aggregates; a new one gets the next."""
        code = self._codes.get(ids)
        if code is None:
            code = self._codes[ids] = len(self._sets)
            self._sets.append(ids)
            self._told.append(self._tell(ids))
            self._forget()
        return code

    def ids(self, code: int) -> frozenset[int]:
        """The aggregates of a code."""
        return self._sets[code]

    def metadata(self, code: int) -> tuple[Metadata, ...]:
        """What is said of the aggregates of a code, in the order of their ids."""
        return self._told[code]

    def set_metadata(self, aggregate_id: int, metadata: Metadata) -> None:
        """Replace what is said of an aggregate. Who does so notes the rows of its hosts."""
        if self._metadata.get(aggregate_id) != metadata:
            self._metadata[aggregate_id] = dict(metadata)
            self._told = [self._tell(each) for each in self._sets]
            self._forget()

    def _forget(self) -> None:
        self.version += 1
        self._multipliers.clear()
        self._mentions.clear()

    def mentions(self, prefix: str) -> bool:
        """Whether any aggregate says anything under a key that begins so."""
        if prefix not in self._mentions:
            keys = (key for each in self._metadata.values() for key in each)
            self._mentions[prefix] = any(key.startswith(prefix) for key in keys)
        return self._mentions[prefix]

    def _tell(self, ids: frozenset[int]) -> tuple[Metadata, ...]:
        return tuple(self._metadata.get(each, {}) for each in sorted(ids))

    def judge(self, verdict: Verdict, codes: Codes) -> Mask:
        """What ``verdict`` says of the metadata behind each of these codes."""
        if codes.shape[0] == 1:
            # One row that was just picked: the other sets are none of its business.
            one: Mask = np.array([verdict(self._told[int(codes[0])])], dtype=np.bool_)
            return one
        by_code = np.fromiter((verdict(each) for each in self._told), dtype=np.bool_)
        judged: Mask = by_code[codes]
        return judged

    def multipliers(self, key: str) -> npt.NDArray[np.float64] | None:
        """By code, the least number that aggregates have under ``key``, ``nan`` where none has.

        None if no aggregate has any. What is no number, or too large a one, is passed over.
        """
        if key not in self._multipliers:
            found = np.array([_least(each, key) for each in self._told])
            self._multipliers[key] = None if np.isnan(found).all() else found
        return self._multipliers[key]


def _least(metadata: Sequence[Metadata], key: str) -> float:
    numbers = (number_of(each[key]) for each in metadata if key in each)
    fit = (each for each in numbers if each is not None and abs(each) <= MULTIPLIER_MAX)
    return min(fit, default=np.nan)
