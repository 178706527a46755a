"""Find the filters that reject each host, and the near misses. This is done only on request.

Always true: the result is a function of table, spec and seed, like the decision. The table is not
changed.
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
"""The turn number of the first draw among equally near hosts. Decisions use lower numbers."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The filters that reject each host.

    For each filter, ``columns`` has the mask of rejected hosts, or None if the filter does not
    apply. ``counts`` has the number of rejecting filters by host.
    """

    filters: tuple[Filter, ...]
    columns: tuple[Mask | None, ...]
    counts: npt.NDArray[np.int32]


def look(filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec) -> Refusals:
    """Apply each filter to all hosts, including hosts that other filters reject."""
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
    """Return a tally for each filter that rejects at least one host, in the order of filters.

    ``known`` has removals by the filter's name. The texts of these removals are reused.
    """
    result: list[Tally] = []
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)
    only_one: Mask = found.counts == 1
    for each, refuses in zip(found.filters, found.columns, strict=True):
        if refuses is None or not refuses.any():
            continue
        removal = (known or {}).get(each.NAME)
        if removal is not None and removal.missing:
            missing = removal.missing, removal.counted
        else:
            missing = pipeline.missing(each, hosts, spec)
        result.append(
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
    return tuple(result)


def shortages(hosts: HostTable, spec: RequestSpec) -> Amount:
    """For each host, return the sum of the missing shares of all requested amounts.

    The missing share of an amount is between 0 and 1. The share is also 1 if the amount is free,
    but the unit rules do not allow it in one allocation.
    """
    total: Amount = np.zeros(hosts.host_count)
    for name, amount in spec.amounts.items():
        if name not in hosts.free:
            total += 1.0
        elif amount > 0:
            free = np.maximum(hosts.left(name, ALL_ROWS), 0.0)
            missing: Amount = np.maximum(amount - free, 0.0) / amount
            has = capacity.has(hosts, name, amount, ALL_ROWS)
            total += np.where(~has & (missing == 0.0), 1.0, missing)
    return total


def nearest(
    found: Refusals, hosts: HostTable, spec: RequestSpec, most: int
) -> tuple[NearMiss, ...]:
    """Return the near misses, sorted by the number of rejecting filters, then by shortage.

    Ties are broken by the request's seed. Dedicated hosts that the request cannot use come last.
    For such a host, only the dedication is reported, because the host's state is not public. If the
    request forces a host, all other hosts also come last.
    """
    refused = np.flatnonzero(found.counts)
    if not refused.shape[0] or most < 1:
        return ()
    short = shortages(hosts, spec)
    counts = found.counts.astype(np.float64)
    others = _refused_by(found, dedication.NAMES)
    counts[others], short[others] = len(found.filters), 0.0
    counts[_refused_by(found, {forced_host.NAME})] += len(found.filters)
    # One number combines filters and shortage. Any shortage counts less than one more filter.
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
    # The remaining hosts are tied, and there are often thousands. Take consecutive hosts from a
    # random start.
    equals = among[mine == last]
    start = draw(seed, NEAREST_TURNS, int(equals.shape[0]))
    rest = equals[(start + np.arange(size - nearer.shape[0])) % equals.shape[0]]
    return [HostIndex(int(index)) for index in (*nearer, *rest)]


def verdicts(
    filters: Sequence[Filter], hosts: HostTable, spec: RequestSpec, index: HostIndex
) -> tuple[Verdict, ...]:
    """Return the verdict of every filter on one host."""
    row = slice(index, index + 1)
    result: list[Verdict] = []
    for each in filters:
        mask = each.mask(hosts, spec, row)
        is_refused = mask is not None and not mask[0]
        objection = _objection(each, hosts, spec, index) if is_refused else None
        result.append(Verdict(each.NAME, mask is not None, objection))
    return tuple(result)


def _objection(each: Filter, hosts: HostTable, spec: RequestSpec, index: HostIndex) -> Objection:
    lacks = getattr(each, "lacks", None)
    texts = () if lacks is None else tuple(lacks(hosts, spec, index))
    return Objection(each.NAME, each.REASON, texts)
