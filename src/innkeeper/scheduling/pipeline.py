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
from innkeeper.snapshot.columns import HostTable, Mask

Weights = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]


class Filter(Protocol):
    """Says which hosts may be used at all."""

    NAME: str
    REASON: str
    """Why a host is removed, to be read after "N hosts: "."""

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: slice) -> Mask | None:
        """True where a host may be used; None where the request asks nothing of the kind."""

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


class Scale:
    """Weights on one scale, fixed when a request is first weighed.

    Each weigher's numbers are brought to 0..1 between the least and the greatest of the first
    candidates. The scale stays through the picks of a request: otherwise each pick would move
    the weights of hosts it did not touch.
    """

    def __init__(
        self, pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, candidates: Indexes
    ) -> None:
        self._hosts = hosts
        self._spec = spec
        self._factors: list[tuple[Weigher, float, float]] = []
        offset = 0.0
        # Gathering the candidates' rows is a copy; without any removal it is not needed.
        is_whole = candidates.shape[0] == hosts.host_count
        total: Weights = np.zeros(candidates.shape[0])
        for weigher, multiplier in pipeline.weighers:
            column = weigher.column(hosts, spec, ALL_ROWS)
            mine = column if is_whole else column.take(candidates)
            least, greatest = float(mine.min()), float(mine.max())
            if multiplier == 0.0 or greatest <= least:
                continue
            factor = multiplier / (greatest - least)
            total += mine * factor
            offset -= least * factor
            self._factors.append((weigher, factor, least))
        # Once for all weighers, rather than once for each.
        self.weights: Weights = total + offset

    def again(self, index: int) -> float:
        """The weight of one host as it is now, on the same scale as :attr:`weights`."""
        return sum(self.parts(index).values())

    def parts(self, index: int) -> Mapping[str, float]:
        """What each weigher gives to one host, multiplied; for explanations."""
        row = slice(index, index + 1)
        return {
            weigher.NAME: (float(weigher.column(self._hosts, self._spec, row)[0]) - least)
            * factor
            for weigher, factor, least in self._factors
        }
