"""Who refuses which hosts, and which of the refused come nearest; by columns, and only when
somebody asks.

Always true: what is told is a function of table, spec and seed, as the decision itself; the
table is not touched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.domain.explaining import NearMiss, Objection, Tally, Verdict
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import Removal, RequestSpec
from innkeeper.scheduling import pipeline
from innkeeper.scheduling.dice import draw
from innkeeper.scheduling.filters import capacity, dedication, forced_host
from innkeeper.scheduling.pipeline import ALL_ROWS, Filter
from innkeeper.snapshot.amounts import Amount, Mask
from innkeeper.snapshot.columns import HostTable

NEAREST_TURNS = 2**48
"""Where the turns of draws among equally near hosts begin: behind all those of decisions."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """What each filter says of each host: True where it refuses; None where it is not asked."""

    filters: tuple[Filter, ...]
    columns: tuple[Mask | None, ...]
    counts: npt.NDArray[np.int32]
    """By how many filters each host is refused."""


def look(filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec) -> Refusals:
    """Ask all filters about all hosts, also about those that others have refused."""
    columns: list[Mask | None] = []
    counts: npt.NDArray[np.int32] = np.zeros(hosts.host_count, dtype=np.int32)
    for each in filters:
        mask = each.mask(hosts, spec, ALL_ROWS)
        columns.append(None if mask is None else ~mask)
        if mask is not None:
            counts += ~mask
    return Refusals(tuple(filters), tuple(columns), counts)


def tallies(
    found: Refusals, hosts: HostTable, spec: RequestSpec, known: Mapping[str, Removal] | None = None
) -> tuple[Tally, ...]:
    """What the filters did, in their order; those that refuse nobody are left out.

    ``known`` has what filters have told to be missing already, by their names.
    """
    told = known or {}
    made: list[Tally] = []
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)
    only_one: Mask = found.counts == 1
    for each, refuses in zip(found.filters, found.columns, strict=True):
        if refuses is None or not refuses.any():
            continue
        missing = _missing(told.get(each.NAME), each, hosts, spec)
        made.append(
            Tally(
                each.NAME,
                removed=int(np.count_nonzero(left & refuses)),
                refused=int(np.count_nonzero(refuses)),
                alone=int(np.count_nonzero(only_one & refuses)),
                reason=each.REASON,
                missing=missing[0],
                counted=missing[1],
            )
        )
        left &= ~refuses
    return tuple(made)


def _missing(
    known: Removal | None, by: Filter, hosts: HostTable, spec: RequestSpec
) -> tuple[str, str]:
    if known is not None and known.missing:
        return known.missing, known.counted
    return pipeline.missing(by, hosts, spec)


def shortages(hosts: HostTable, spec: RequestSpec) -> Amount:
    """How much of the amounts each host lacks, as shares that are added up.

    What is there and cannot be had in one piece is missing whole.
    """
    total: Amount = np.zeros(hosts.host_count)
    for name, amount in spec.amounts.items():
        if name not in hosts.free:
            total += 1.0
        elif amount > 0:
            total += _shortage(hosts, name, amount)
    return total


def _shortage(hosts: HostTable, name: str, amount: int) -> Amount:
    at_hand = np.maximum(hosts.left(name, ALL_ROWS), 0.0)
    missing: Amount = np.maximum(amount - at_hand, 0.0) / amount
    has = capacity.has(hosts, name, amount, ALL_ROWS)
    return np.where(~has & (missing == 0.0), 1.0, missing)


def nearest(
    found: Refusals, hosts: HostTable, spec: RequestSpec, most: int
) -> tuple[NearMiss, ...]:
    """The refused hosts that come nearest: fewest refusals first, then the least shortage.

    Among equals the request's seed draws. A host that is refused because the request names
    another, or because it is dedicated to others, stands behind all that are refused for what
    they are. Of one that is dedicated nothing else is told: it is not for everybody to know.
    """
    refused = np.flatnonzero(found.counts)
    if not refused.shape[0] or most < 1:
        return ()
    short = shortages(hosts, spec)
    counts = found.counts.astype(np.float64)
    others = _refused_by(found, dedication.NAMES)
    counts[others], short[others] = len(found.filters), 0.0
    counts[_refused_by(found, {forced_host.NAME})] += len(found.filters)
    # One number for both: no shortage is as much as one more refusal.
    distance = counts * (len(spec.amounts) + 1.0) + short
    return tuple(
        NearMiss(
            hosts.names[index],
            tuple(
                _objection(each, hosts, spec, index)
                for each, refuses in zip(found.filters, found.columns, strict=True)
                if refuses is not None and refuses[index]
                if each.NAME in dedication.NAMES or not others[index]
            ),
            float(short[index]),
        )
        for index in _least(distance, refused, most, spec.seed)
    )


def _refused_by(found: Refusals, names: Collection[str]) -> Mask:
    refused: Mask = np.zeros(found.counts.shape, dtype=np.bool_)
    for each, refuses in zip(found.filters, found.columns, strict=True):
        if each.NAME in names and refuses is not None:
            refused |= refuses
    return refused


def _least(distance: Amount, among: npt.NDArray[np.intp], most: int, seed: int) -> list[HostIndex]:
    mine = distance[among]
    size = min(most, mine.shape[0])
    last = np.partition(mine, size - 1)[size - 1]
    nearer = among[mine < last]
    nearer = nearer[np.argsort(distance[nearer], kind="stable")]
    # The rest are equals, often thousands: some of them in a row, from a drawn one on.
    equals = among[mine == last]
    start = draw(seed, NEAREST_TURNS, int(equals.shape[0]))
    rest = equals[(start + np.arange(size - nearer.shape[0])) % equals.shape[0]]
    return [HostIndex(int(index)) for index in (*nearer, *rest)]


def verdicts(
    filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec, index: HostIndex
) -> tuple[Verdict, ...]:
    """What every filter says of one host."""
    row = slice(index, index + 1)
    made: list[Verdict] = []
    for each in filters:
        mask = each.mask(hosts, spec, row)
        is_refused = mask is not None and not mask[0]
        objection = _objection(each, hosts, spec, index) if is_refused else None
        made.append(Verdict(each.NAME, mask is not None, objection))
    return tuple(made)


def _objection(each: Filter, hosts: HostTable, spec: RequestSpec, index: HostIndex) -> Objection:
    # A filter of one's own need not be able to say it.
    lacks = getattr(each, "lacks", None)
    told = () if lacks is None else tuple(lacks(hosts, spec, index))
    return Objection(each.NAME, each.REASON, told)
