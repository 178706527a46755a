"""Filter, then weigh, over all hosts at once; counts what each filter removed.

A filter is a module with ``NAME``, ``REASON``, ``mask`` and ``missing``; a weigher one with
``NAME`` and ``column``. Both get ``rows``: the whole table, or the one row that a pick has
just changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from innkeeper.domain.placing import Removal, RequestSpec
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable

Weights = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]


class Filter(Protocol):
    """Says which hosts may be used at all."""

    NAME: str
    REASON: str
    """Why a host is removed, to be read after "N hosts: "."""

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: slice) -> Mask | None:
        """True where a host may be used; None where the request asks nothing of the kind.

        Of pools it may only ask whether they give what the request asks for.
        """

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """What was asked for, and the nearest there is; for people."""


class Weigher(Protocol):
    """Says how good a host is; higher wins."""

    NAME: str

    def column(self, hosts: HostTable, spec: RequestSpec, rows: slice) -> Weights:
        """Any numbers; they are brought to 0..1 over the candidates before they are summed."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters in order, and weighers with their multipliers."""

    filters: tuple[Filter, ...]
    weighers: tuple[tuple[Weigher, float], ...]


ALL_ROWS = slice(None)


Taken = list[tuple[Filter, int]]
"""Filters that removed hosts, in order, and how many each."""


def select(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec) -> tuple[Mask, Taken]:
    """Apply all filters: what is left, and what each of them took away."""
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)
    before = hosts.host_count
    taken: Taken = []
    for each in pipeline.filters:
        mask = each.mask(hosts, spec, ALL_ROWS)
        if mask is None:
            continue
        assert mask.shape == left.shape
        left &= mask
        after = int(np.count_nonzero(left))
        if after < before:
            taken.append((each, before - after))
        before = after
        if after == 0:
            break
    return left, taken


def removals(
    taken: Taken, hosts: HostTable, spec: RequestSpec, *, is_wanted_whole: bool
) -> tuple[Removal, ...]:
    """What the filters did, in words; what was missing only where that is wanted.

    Looking for the nearest miss reads whole columns again, and nobody asks after a success.
    """
    return tuple(
        Removal(
            each.NAME,
            count,
            each.REASON,
            each.missing(hosts, spec) if is_wanted_whole else "",
        )
        for each, count in taken
    )


def still_fits(
    filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec, index: int
) -> bool:
    """Ask all filters again about one host, after a pick has changed it."""
    row = slice(index, index + 1)
    for each in filters:
        mask = each.mask(hosts, spec, row)
        if mask is not None and not mask[0]:
            return False
    return True


_Factor = tuple[Weigher, float, float]
"""A weigher, what its numbers are multiplied by, and the least of them."""


class Scale:
    """Weights on one scale, fixed when a request is first weighed.

    Each weigher's numbers are brought to 0..1 between the least and the greatest of the first
    candidates. The scale stays through the picks of a request: otherwise each pick would move
    the weights of hosts it did not touch. Where all candidates are alike, a pick moves its host
    by the share that it took, so that servers spread or pack over a uniform cloud as well.

    Always true: hosts with equal columns have equal weights to the last bit, whether they were
    weighed first or again; ties are found by comparing.
    """

    def __init__(
        self, pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, candidates: Indexes
    ) -> None:
        self._hosts = hosts
        self._spec = spec
        self._candidates = candidates
        self._unlike: list[_Factor] = []
        self._alike: list[_Factor] = []
        self._offset = 0.0
        # Gathering the candidates' rows is a copy; without any removal it is not needed.
        is_whole = candidates.shape[0] == hosts.host_count
        total: Weights = np.zeros(candidates.shape[0])
        for weigher, multiplier in pipeline.weighers:
            if multiplier == 0.0:
                continue
            column = weigher.column(hosts, spec, ALL_ROWS)
            mine = column if is_whole else column.take(candidates)
            least, greatest = float(mine.min()), float(mine.max())
            if greatest > least:
                factor = multiplier / (greatest - least)
                total += mine * factor
                self._offset -= least * factor
                self._unlike.append((weigher, factor, least))
            else:
                self._alike.append((weigher, multiplier / (abs(greatest) or 1.0), least))
        # Once for all weighers, rather than once for each.
        self.weights: Weights = total + self._offset

    def again(self, index: int) -> float:
        """The weight of one host as it is now, on the same scale as :attr:`weights`."""
        # The same sums in the same order as above: rounding must not tell equals apart.
        total = 0.0
        for weigher, factor, _ in self._unlike:
            total += self._value(weigher, index) * factor
        total += self._offset
        for weigher, factor, least in self._alike:
            total += (self._value(weigher, index) - least) * factor
        return total

    def all_again(self) -> Weights:
        """The weights of all candidates as they are now, on the same scale."""
        # As in ``again``, to the last bit.
        total: Weights = np.zeros(self._candidates.shape[0])
        for weigher, factor, _ in self._unlike:
            total += self._values(weigher) * factor
        total += self._offset
        for weigher, factor, least in self._alike:
            total += (self._values(weigher) - least) * factor
        return total

    def _values(self, weigher: Weigher) -> Weights:
        column = weigher.column(self._hosts, self._spec, ALL_ROWS)
        return column.take(self._candidates)

    def parts(self, index: int) -> Mapping[str, float]:
        """What each weigher gives to one host, multiplied; for explanations."""
        return {
            weigher.NAME: (self._value(weigher, index) - least) * factor
            for weigher, factor, least in (*self._unlike, *self._alike)
        }

    def _value(self, weigher: Weigher, index: int) -> float:
        row = slice(index, index + 1)
        return float(weigher.column(self._hosts, self._spec, row)[0])
