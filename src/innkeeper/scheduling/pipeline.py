"""Run filters and weighers over all hosts at once, and count the hosts that each filter removes.

A filter is a module or an object with ``NAME``, ``REASON``, ``READS``, ``mask`` and ``missing``. A
weigher has ``NAME``, ``READS``, ``AGGREGATE_KEY``, ``column`` and ``scale``. The argument ``rows``
of filters and weighers is the whole table, or the rows that were edited since the last call.

The weight of a host is the sum over all weighers of column / scale x multiplier. The scale is a
constant of the table or the request, such as the largest memory capacity of any host. The scale
does not depend on the candidates. Weights therefore stay comparable after a pick, and only edited
rows are weighed again.

Always true: hosts with equal columns have exactly equal weights, whether they were weighed together
or alone. Ties can therefore be found by comparing weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from innkeeper.domain.placing import Removal, RequestSpec
from innkeeper.scheduling.reading import MOVING, RARE, Reads, frozen
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

Weights = npt.NDArray[np.float64]
ALL_ROWS = slice(None)
Table_contra = TypeVar("Table_contra", contravariant=True)
Spec_contra = TypeVar("Spec_contra", contravariant=True)


class TableFilter(Protocol[Table_contra, Spec_contra]):
    """A filter for the rows of any kind of table. :class:`Filter` is the protocol for hosts."""

    NAME: str
    REASON: str
    READS: Reads

    def mask(self, table: Table_contra, spec: Spec_contra, rows: Rows, /) -> Mask | None:
        """Return True where a row may be used, or None if the filter does not apply."""

    def missing(self, table: Table_contra, spec: Spec_contra, /) -> str:
        """Describe what was requested and what is available."""


class TableWeigher(Protocol[Table_contra, Spec_contra]):
    """A weigher for the rows of any kind of table. :class:`Weigher` is the protocol for hosts."""

    NAME: str
    READS: Reads

    def column(self, table: Table_contra, spec: Spec_contra, rows: Rows, /) -> Weights:
        """Return a finite number for each row. The highest number is the best."""

    def scale(self, table: Table_contra, spec: Spec_contra, /) -> float:
        """Return the divisor of the column, or 0 if the weigher does not apply."""


class Filter(Protocol):
    """A filter decides which hosts may be used.

    Optional attributes:

    - ``stamp(hosts, spec)`` returns a value that is compared with its previous value. While the
      value stays equal, ``mask`` changes only in edited rows. ``stamp`` is required if the filter
      reads the clock.
    - ``NEEDS_SERVERS = True`` means that the filter reads the numbers of servers on hosts.
    - ``HALVES`` has two filters of the same name that together are equivalent to this filter. One
      half can be cached. The other half must be evaluated per request.
    - ``admits(hosts, spec, index)`` returns the result of ``mask`` for one row, but faster.
    - ``few(hosts, spec)`` returns the rows where ``mask`` is True, in order, or None if the filter
      does not apply. Later filters skip all other rows. A filter may have ``few`` only if it is
      evaluated per request, leaves few hosts, and has the same result after a pick.
    - ``lacks(hosts, spec, index)`` returns texts that say what one host lacks.
    - ``missing_counted(hosts, spec)`` returns the text of ``missing`` with numbers of hosts, for
      administrators. This method is required if ``missing`` hides the numbers when some hosts are
      dedicated.
    - ``HINTS`` has the scheduler hints that the filter reads. A filter that reads ``hints`` without
      this attribute may read all hints.
    """

    NAME: str
    REASON: str
    """Why the filter removes a host, as a clause for messages."""
    READS: Reads

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True where a host may be used, or None if the filter does not apply.

        Whether a filter applies may depend only on the request and on aggregate metadata. As an
        exception, a filter that reads the server group may begin to apply once the group has a
        member. About pools, a filter may read only whether they can supply the requested amounts.
        """

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """Describe what was requested and what is available, without names of hosts."""


class Weigher(Protocol):
    """A weigher gives each host a number. A higher number is better.

    ``NEEDS_SERVERS`` and ``HINTS`` are optional, and mean the same as for :class:`Filter`.
    ``stamp`` is required if the numbers depend on other hosts or on the clock. ``number(hosts,
    spec, index)`` is optional. It returns the same number as ``column`` for one host, but faster.
    """

    NAME: str
    READS: Reads
    AGGREGATE_KEY: str
    """The metadata key with which aggregates override the multiplier for their hosts."""

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        """Return a finite number for each row, in the weigher's own unit."""

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """Return the divisor of the column, or 0 if the weigher does not apply."""


APART = frozenset({"amounts", "rules", "hints"})
"""Fields that :meth:`Pipeline.shape` handles separately. Mappings have no hash, and hashing the
rules would take as long as hashing all other fields."""
Weighed = tuple[Weigher, float]
"""A weigher and its multiplier."""
Taken = list[tuple[Filter, int]]
"""Filters that removed hosts, in order, each with the number of removed hosts."""


class Rare(NamedTuple):
    """A filter that is evaluated per request and not cached, because it reads a field of ``RARE``.

    If ``is_moving``, the filter's result may change after every pick. If ``reads_group``, the
    filter may begin to apply when the group gets its first member.
    """

    filter: Filter
    few: Callable[[HostTable, RequestSpec], Rows | None] | None
    is_moving: bool
    reads_group: bool


class Pipeline:
    """A pipeline has filters in order, and weighers with their multipliers.

    Filters and weighers that read a field of ``RARE`` are called *rare*. They are evaluated per
    request, after all others. All other filters and weighers are called *steady*. Their results are
    cached.
    """

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weighed]) -> None:
        self.filters = tuple(filters)
        self.weighers = tuple((each, factor) for each, factor in weighers if factor != 0.0)
        parts = [part for each in filters for part in getattr(each, "HALVES", (each,))]
        self.steady_filters = tuple(each for each in parts if not _is_rare(each))
        # Filters that leave few rows come first, so that later filters skip all other rows.
        rare = [each for each in parts if _is_rare(each)]
        self.rare_filters = tuple(sorted(rare, key=lambda each: not hasattr(each, "few")))
        self.steady_weighers = tuple(each for each in self.weighers if not _is_rare(each[0]))
        self.rare_weighers = tuple(each for each in self.weighers if _is_rare(each[0]))
        self.rare = tuple(
            Rare(
                each,
                getattr(each, "few", None),
                is_moving=not MOVING.isdisjoint(each.READS),
                reads_group="group" in each.READS,
            )
            for each in self.rare_filters
        )
        steady: list[Filter | Weigher] = [
            *self.steady_filters,
            *(each for each, _ in self.steady_weighers),
        ]
        fields = sorted({name for each in steady for name in each.READS} - APART)
        self._fields = attrgetter(*fields) if fields else None
        readers = [each for each in steady if "hints" in each.READS]
        named = [getattr(each, "HINTS", ()) for each in readers]
        self._reads_hints = bool(readers)
        # ``_hints`` is None if a filter or weigher may read all hints.
        self._hints = frozenset().union(*named) if all(named) else None

    def shape(self, spec: RequestSpec) -> object:
        """Return a hashable key of all values in a request that cached filters and weighers read.

        The rules are left out, since they are the same for all requests of a service.
        """
        read = self._fields(spec) if self._fields is not None else None
        if not self._reads_hints:
            return (*spec.amounts.items(), read)
        hints = spec.hints
        if self._hints is not None:
            hints = {name: hints[name] for name in self._hints if name in hints}
        return (*spec.amounts.items(), read, frozen(hints))

    @property
    def needs_servers(self) -> bool:
        """Whether any filter or weigher reads the numbers of servers."""
        users: list[Any] = [*self.filters, *(each for each, _ in self.weighers)]
        return any(getattr(each, "NEEDS_SERVERS", False) for each in users)


def _is_rare(each: Filter | Weigher) -> bool:
    return not RARE.isdisjoint(each.READS)


T = TypeVar("T")
S = TypeVar("S")


def masks(filters: Sequence[TableFilter[T, S]], table: T, spec: S) -> Iterator[tuple[int, Mask]]:
    """For each filter that applies, yield its index in ``filters``, and its mask."""
    for place, each in enumerate(filters):
        mask = each.mask(table, spec, ALL_ROWS)
        if mask is not None:
            yield place, mask


def select(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec) -> tuple[Mask, Taken]:
    """Apply all filters. Return the mask of the remaining hosts and the removals by filter."""
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)
    taken: Taken = []
    before = hosts.host_count
    filters = (*pipeline.steady_filters, *pipeline.rare_filters)
    for place, mask in masks(filters, hosts, spec):
        each = filters[place]
        assert mask.shape == left.shape
        left &= mask
        after = int(np.count_nonzero(left))
        if after < before:
            taken.append((each, before - after))
        before = after
    return left, taken


def removals(
    taken: Taken, hosts: HostTable, spec: RequestSpec, *, with_missing: bool
) -> tuple[Removal, ...]:
    """Return the number of hosts that each filter removed, and the reason.

    With ``with_missing``, the result also describes what the hosts lacked. This reads whole columns
    again, and is not needed if all servers were placed.
    """
    # The halves of a filter are reported as one filter.
    counts: dict[str, int] = {}
    for each, count in taken:
        counts[each.NAME] = counts.get(each.NAME, 0) + count
    by_name = {each.NAME: each for each, _ in reversed(taken)}
    texts = {
        name: missing(each, hosts, spec) if with_missing else ("", "")
        for name, each in by_name.items()
    }
    return tuple(
        Removal(name, count, by_name[name].REASON, *texts[name]) for name, count in counts.items()
    )


def missing(by: Filter, hosts: HostTable, spec: RequestSpec) -> tuple[str, str]:
    """Return a filter's texts about what hosts lack: for users, and for administrators."""
    text = by.missing(hosts, spec)
    counted = getattr(by, "missing_counted", None)
    return text, text if counted is None else counted(hosts, spec)


def scales(
    weighers: Sequence[tuple[TableWeigher[T, S], float]], table: T, spec: S
) -> Iterator[tuple[int, float, float]]:
    """For each weigher that applies, yield its index, its multiplier / scale, and the scale."""
    for place, (each, multiplier) in enumerate(weighers):
        scale = each.scale(table, spec)
        if scale != 0.0:
            yield place, multiplier / scale, scale


Active = tuple[Weigher, float, float]
"""A weigher that applies, the weigher's multiplier divided by its scale, and the scale itself."""


def active(weighers: Sequence[Weighed], hosts: HostTable, spec: RequestSpec) -> tuple[Active, ...]:
    """Return the weighers that apply to this request."""
    found = scales(weighers, hosts, spec)
    return tuple((weighers[place][0], by, scale) for place, by, scale in found)


def weigh(
    weighers: Sequence[Weighed], hosts: HostTable, spec: RequestSpec, rows: Rows
) -> Weights | None:
    """Return the weights of some rows, or None if no weigher applies."""
    return add_up(active(weighers, hosts, spec), hosts, spec, rows)


def add_up(
    weighers: Sequence[Active], hosts: HostTable, spec: RequestSpec, rows: Rows
) -> Weights | None:
    """Return the weights of some rows, summed over weighers, or None without weighers."""
    total: Weights | None = None
    has_aggregates = hosts.has_aggregates
    for weigher, usual, scale in weighers:
        factor: float | Weights = usual
        if has_aggregates:
            factor = _factor(hosts, weigher, usual, scale, rows)
        part = weigher.column(hosts, spec, rows) * factor
        total = part if total is None else total + part
    return total


def numbers(weights: Weights) -> Weights:
    """Return the weights, with 0 in place of NaN and infinity."""
    if np.isfinite(weights.sum()):
        # Usually, the sum is finite. It is finite only if all weights are finite.
        return weights
    return np.where(np.isfinite(weights), weights, 0.0)


def _factor(
    hosts: HostTable, weigher: Weigher, usual: float, scale: float, rows: Rows
) -> float | Weights:
    """Return the factor for a weigher's column.

    Aggregates may override this factor for their hosts.
    """
    by_code = hosts.aggregates.multipliers(weigher.AGGREGATE_KEY)
    if by_code is None:
        return usual
    mine: Weights = by_code[hosts.aggregate_codes[rows]] / scale
    return np.where(np.isnan(mine), usual, mine)


def parts(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, index: int
) -> Mapping[str, float]:
    """Return each weigher's part of the weight of one host, for explanations."""
    ordered = (*pipeline.steady_weighers, *pipeline.rare_weighers)
    return parts_by(active(ordered, hosts, spec), hosts, spec, index)


def parts_by(
    weighers: Sequence[Active], hosts: HostTable, spec: RequestSpec, index: int
) -> Mapping[str, float]:
    """Return each active weigher's part of the weight of one host."""
    row = slice(index, index + 1)
    has_aggregates = hosts.has_aggregates
    found: dict[str, float] = {}
    for weigher, usual, scale in weighers:
        # This repeats ``add_up`` for one row, without arrays of factors.
        by = usual
        if has_aggregates:
            own = _factor(hosts, weigher, usual, scale, row)
            by = own if isinstance(own, float) else float(own[0])
        number = getattr(weigher, "number", None)
        found[weigher.NAME] = by * (
            float(weigher.column(hosts, spec, row)[0])
            if number is None
            else number(hosts, spec, index)
        )
    return found
