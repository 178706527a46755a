"""Filter, then weigh, over all hosts at once; counts what each filter removed.

A filter is a module or an object with ``NAME``, ``REASON``, ``READS``, ``mask`` and
``missing``; a weigher one with ``NAME``, ``READS``, ``AGGREGATE_KEY``, ``column`` and
``scale``. Both get ``rows``: the whole table, or those that were edited since they were last
asked.

A host's weight is the sum, over all weighers, of its number divided by the weigher's scale
and multiplied by the weigher's multiplier. The scale is a fixed number of the table or the
request, such as the most memory that one host has: it does not depend on who else is a
candidate. So a weight means the same before and after a pick, and only what was edited is
weighed again.

Always true: hosts with equal columns have equal weights to the last bit, whether they were
weighed all at once or alone; ties are found by comparing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from innkeeper.domain.placing import Removal, RequestSpec
from innkeeper.scheduling.reading import MOVING, RARE, Reads, frozen
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

Weights = npt.NDArray[np.float64]
ALL_ROWS = slice(None)


class Filter(Protocol):
    """Says which hosts may be used at all.

    One that looks at the clock has ``stamp(hosts, spec)`` as well: as long as that is equal,
    what it says of rows that were not edited stays as it is. One that counts servers has
    ``NEEDS_SERVERS = True``, and so has a weigher that does. One of which a part reads less
    than the rest has ``HALVES``, filters of its name that together say what it says. One that
    hardly any request does without may have ``admits(hosts, spec, index)``: what ``mask`` says
    of one row, sooner. One that reads what is rare, leaves few hosts and says the same after
    every pick may have ``few(hosts, spec)``: the rows, in order, of which ``mask`` says True;
    nobody else is looked at then. And ``lacks(hosts, spec, index)`` says what one host lacks,
    for people. One whose ``missing`` leaves out numbers of hosts where some are dedicated has
    ``missing_counted(hosts, spec)`` as well: the same with the numbers, for administrators.

    One may name the scheduler hints that it reads in ``HINTS``. One that reads ``hints`` and
    names none may read any of them.
    """

    NAME: str
    REASON: str
    """Why a host is removed, to be read after "N hosts: "."""
    READS: Reads

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True where a host may be used; None where the request asks nothing of the kind.

        Whether it is None depends on the request and on the metadata of aggregates alone; a
        group may have more to say once it has a member. Of pools it may only ask whether they
        give what the request asks for.
        """

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """What was asked for, and the nearest there is; for people, and naming no host."""


class Weigher(Protocol):
    """Says how good a host is; higher wins.

    One whose numbers depend on other hosts, or on the clock, has ``stamp`` as filters have; and
    it may have ``HINTS`` as they have.
    """

    NAME: str
    READS: Reads
    AGGREGATE_KEY: str
    """Under which aggregates can give their hosts a multiplier of their own."""

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        """Any finite numbers, in the weigher's own unit."""

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """The number that weighs 1; 0 where this request has nothing to weigh."""


APART = frozenset({"amounts", "rules", "hints"})
"""Fields that are read otherwise when shapes are compared: a mapping has no hash, and that of
the rules would take as long as the rest."""
Weighed = tuple[Weigher, float]
"""A weigher and its multiplier."""
Taken = list[tuple[Filter, int]]
"""Filters that removed hosts, in order, and how many each."""


class Rare(NamedTuple):
    """A filter that is asked at every decision, and what need not be found out each time.

    One that ``is_moving`` may say something else after every pick; so may one that
    ``reads_group``, which had nothing to say before, of a group that gets its first member.
    """

    filter: Filter
    few: Callable[[HostTable, RequestSpec], Rows | None] | None
    is_moving: bool
    reads_group: bool


def _rare(each: Filter) -> Rare:
    few = getattr(each, "few", None)
    return Rare(each, few, not MOVING.isdisjoint(each.READS), "group" in each.READS)


class Pipeline:
    """Filters in order, and weighers with their multipliers.

    Those that read what hardly two requests have alike are kept apart: they are ``rare``, and
    asked each time, behind the ``steady`` ones.
    """

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weighed]) -> None:
        self.filters = tuple(filters)
        self.weighers = tuple((each, factor) for each, factor in weighers if factor != 0.0)
        parts = [part for each in filters for part in getattr(each, "HALVES", (each,))]
        self.steady_filters = tuple(each for each in parts if not _is_rare(each))
        # Who may leave few comes first, so that the others need not look at the rest.
        rare = [each for each in parts if _is_rare(each)]
        self.rare_filters = tuple(sorted(rare, key=lambda each: not hasattr(each, "few")))
        self.steady_weighers = tuple(each for each in self.weighers if not _is_rare(each[0]))
        self.rare_weighers = tuple(each for each in self.weighers if _is_rare(each[0]))
        self.rare = tuple(_rare(each) for each in self.rare_filters)
        steady: list[Filter | Weigher] = [
            *self.steady_filters,
            *(each for each, _ in self.steady_weighers),
        ]
        fields = sorted({name for each in steady for name in each.READS} - APART)
        self._fields = attrgetter(*fields) if fields else None
        readers = [each for each in steady if "hints" in each.READS]
        self._reads_hints = bool(readers)
        self._hints = _declared(readers)

    def shape(self, spec: RequestSpec) -> object:
        """What the steady ones read of a request: alike for requests that they judge alike.

        But for the rules, which are alike for all requests of a service.
        """
        read = self._fields(spec) if self._fields is not None else None
        if self._reads_hints:
            return (*spec.amounts.items(), read, self._hints_read(spec))
        return (*spec.amounts.items(), read)

    def _hints_read(self, spec: RequestSpec) -> object:
        hints, names = spec.hints, self._hints
        if names is None:
            return frozen(hints)
        return frozen({name: hints[name] for name in names if name in hints})

    @property
    def needs_servers(self) -> bool:
        """Whether anybody here counts servers."""
        asked: list[Any] = [*self.filters, *(each for each, _ in self.weighers)]
        return any(getattr(each, "NEEDS_SERVERS", False) for each in asked)


def _declared(readers: Sequence[Filter | Weigher]) -> frozenset[str] | None:
    """The hints that these read; ``None`` if one of them may read any."""
    named = [getattr(each, "HINTS", ()) for each in readers]
    if not all(named):
        return None
    return frozenset(name for names in named for name in names)


def _is_rare(each: Filter | Weigher) -> bool:
    return not RARE.isdisjoint(each.READS)


def select(pipeline: Pipeline, hosts: HostTable, spec: RequestSpec) -> tuple[Mask, Taken]:
    """Apply all filters: what is left, and what each of them took away."""
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)
    taken: Taken = []
    narrow((*pipeline.steady_filters, *pipeline.rare_filters), hosts, spec, left, taken)
    return left, taken


def narrow(
    filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec, left: Mask, taken: Taken
) -> None:
    """Take what these filters remove out of ``left``, and note in ``taken`` how many."""
    before = int(np.count_nonzero(left))
    for each in filters:
        mask = each.mask(hosts, spec, ALL_ROWS)
        if mask is None:
            continue
        assert mask.shape == left.shape
        left &= mask
        after = int(np.count_nonzero(left))
        if after < before:
            taken.append((each, before - after))
        before = after


def removals(
    taken: Taken, hosts: HostTable, spec: RequestSpec, *, is_wanted_whole: bool
) -> tuple[Removal, ...]:
    """What the filters did, in words; what was missing only where that is wanted.

    Looking for the nearest miss reads whole columns again, and nobody asks after a success.
    """
    # Two parts of one filter are one to whoever reads it.
    counts: dict[str, int] = {}
    for each, count in taken:
        counts[each.NAME] = counts.get(each.NAME, 0) + count
    by_name = {each.NAME: each for each, _ in reversed(taken)}
    if not is_wanted_whole:
        return tuple(
            Removal(name, count, by_name[name].REASON, "", "") for name, count in counts.items()
        )
    return tuple(
        Removal(name, count, by_name[name].REASON, *missing(by_name[name], hosts, spec))
        for name, count in counts.items()
    )


def missing(by: Filter, hosts: HostTable, spec: RequestSpec) -> tuple[str, str]:
    """What a filter misses: for everybody, and with numbers of hosts for administrators."""
    told = by.missing(hosts, spec)
    counted = getattr(by, "missing_counted", None)
    return told, told if counted is None else counted(hosts, spec)


Active = tuple[Weigher, float, float]
"""A weigher that has something to weigh, its multiplier by its scale, and its scale."""


def active(weighers: Sequence[Weighed], hosts: HostTable, spec: RequestSpec) -> tuple[Active, ...]:
    """The weighers that have something to weigh for this request."""
    scaled = [(each, multiplier, each.scale(hosts, spec)) for each, multiplier in weighers]
    return tuple((each, by / scale, scale) for each, by, scale in scaled if scale != 0.0)


def weigh(
    weighers: Sequence[Weighed], hosts: HostTable, spec: RequestSpec, rows: Rows
) -> Weights | None:
    """The weights of some rows; None if nobody weighs anything."""
    return add_up(active(weighers, hosts, spec), hosts, spec, rows)


def add_up(
    weighers: Sequence[Active], hosts: HostTable, spec: RequestSpec, rows: Rows
) -> Weights | None:
    """As :func:`weigh`, for who has the active ones at hand."""
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
    """These weights, and 0 for what is no number."""
    if np.isfinite(weights.sum()):
        # The usual case: had one of them been none, so would be the sum.
        return weights
    return np.where(np.isfinite(weights), weights, 0.0)


def _factor(
    hosts: HostTable, weigher: Weigher, usual: float, scale: float, rows: Rows
) -> float | Weights:
    """What a weigher's numbers are multiplied by; hosts of some aggregates have their own."""
    by_code = hosts.aggregates.multipliers(weigher.AGGREGATE_KEY)
    if by_code is None:
        return usual
    mine: Weights = by_code[hosts.aggregate_codes[rows]] / scale
    return np.where(np.isnan(mine), usual, mine)


def parts(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, index: int
) -> Mapping[str, float]:
    """What each weigher gives to one host, multiplied; for explanations."""
    ordered = (*pipeline.steady_weighers, *pipeline.rare_weighers)
    return parts_by(active(ordered, hosts, spec), hosts, spec, index)


def parts_by(
    weighers: Sequence[Active], hosts: HostTable, spec: RequestSpec, index: int
) -> Mapping[str, float]:
    """As :func:`parts`, for who has the active ones at hand."""
    row = slice(index, index + 1)
    has_aggregates = hosts.has_aggregates
    found: dict[str, float] = {}
    for weigher, usual, scale in weighers:
        # As in ``weigh``, without making an array of one.
        by = usual
        if has_aggregates:
            own = _factor(hosts, weigher, usual, scale, row)
            by = own if isinstance(own, float) else float(own[0])
        found[weigher.NAME] = float(weigher.column(hosts, spec, row)[0]) * by
    return found
