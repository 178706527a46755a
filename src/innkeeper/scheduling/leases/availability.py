"""Compute when, and for how long, units for a demand are free.

A *demand* is what one reservation of a lease asks for. A *unit* is a whole host, or a slot on a
host.

Always true: for a single demand, the answers are exact.
:func:`innkeeper.scheduling.leases.choosing.choose` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.filling import Units
from innkeeper.scheduling.leases.stepping import FreeSteps, Starts, closings, free_steps
from innkeeper.scheduling.leases.timeline import Timeline, marked, overlapping
from innkeeper.snapshot.amounts import Amount, Indexes, Mask
from innkeeper.snapshot.calendar import Calendar, Micros


def free_units(
    calendar: Calendar,
    demand: Demand,
    start: int,
    end: int,
    usable: Mask,
    cleaning: int = 0,
    ignored: Collection[int] = (),
) -> list[tuple[int, int, int]]:
    """Return the number of free units over time, as tuples (from, to, units) in order of time.

    A short lease that begins in an interval could get the units of this interval. If all units must
    be on one host, the number is that of the host with the most free units. The intervals cover the
    time from ``start`` to ``end``, and adjacent intervals have different numbers.
    """
    steps = free_steps(calendar, demand, Starts(start, end, cleaning=cleaning), usable, ignored)
    times, totals = _totals(steps, demand, start)
    ends = np.append(times[1:], end)
    return list(zip(times.tolist(), ends.tolist(), totals.astype(int).tolist(), strict=True))


def earliest(
    calendar: Calendar,
    demand: Demand,
    starts: Starts,
    usable: Mask,
    ignored: Collection[int] = (),
    grain: int = 1,
) -> int | None:
    """Return the earliest start of a window in which the demand fits, or None if there is none.

    The result is either the beginning of ``starts`` or a multiple of ``grain``. Times are in
    microseconds.
    """
    if starts.start >= starts.end:
        return None
    steps = free_steps(calendar, demand, starts, usable, ignored)
    times, totals = _totals(steps, demand, starts.start)
    ends = np.append(times[1:], starts.end)
    possible = np.where(times == starts.start, times, -(-times // grain) * grain)
    enough = np.flatnonzero((totals >= demand.units_min) & (possible < ends))
    return int(possible[enough[0]]) if enough.size else None


def latest_end(
    calendar: Calendar,
    held: Sequence[tuple[Demand, Units]],
    end: int,
    limit: int,
    cleaning: int = 0,
    ignored: Collection[int] = (),
) -> int:
    """Return the latest end to which a lease can be extended on its present hosts.

    The result is between ``end`` and ``limit``. ``held`` has the demands of the lease, each with
    its present units by row of the calendar. ``ignored`` are the ids of the lease's own
    reservations.
    """
    if limit <= end:
        return end
    is_own = marked(calendar, np.concatenate([pairs[:, 0] for _, pairs in held] or [_NOTHING]))
    horizon = limit + cleaning
    holds = overlapping(calendar, end, horizon, ignored)
    holds = holds[is_own[calendar.hold_rows[holds]]]
    steps = Timeline(
        calendar,
        np.flatnonzero(is_own),
        holds,
        end,
        horizon,
        closed_from=closings(calendar, cleaning),
    )
    blocked = steps.times[_is_blocked(calendar, held, steps)]
    return max(end, min(limit, int(blocked.min(initial=horizon)) - cleaning))


_NOTHING: Indexes = np.zeros(0, dtype=np.intp)


def _is_blocked(calendar: Calendar, held: Sequence[tuple[Demand, Units]], steps: Timeline) -> Mask:
    """Return True for the steps in which other leases leave too little room for the held units."""
    is_whole = np.zeros(calendar.host_count, dtype=np.bool_)
    amounts: dict[str, Amount] = {}
    for demand, pairs in held:
        rows, units = pairs.T
        is_whole[rows] |= demand.is_whole
        for name, amount in (demand.unit_amounts or {}).items():
            np.add.at(amounts.setdefault(name, np.zeros(calendar.host_count)), rows, units * amount)
    blocked: Mask = (steps.wholes() > 0) | (is_whole[steps.rows] & (steps.shares() > 0))
    for name, mine in amounts.items():
        capacity = calendar.capacities.get(name, np.zeros(calendar.host_count))
        needed = mine[steps.rows]
        blocked |= (needed > 0) & (steps.amounts(name) + needed > capacity[steps.rows])
    return blocked


def _totals(steps: FreeSteps, demand: Demand, start: int) -> tuple[Micros, Amount]:
    """Return the times at which the total number of units changes, with the new totals."""
    times = np.unique(np.append(steps.times, start))
    totals = (_greatest if demand.affinity and not demand.is_whole else _sum)(steps, times)
    differs = np.append(True, totals[1:] != totals[:-1])
    return times[differs], totals[differs]


def _sum(steps: FreeSteps, times: Micros) -> Amount:
    """Return the sum of the free units of all hosts at each of these times."""
    before = np.append(0.0, steps.units[:-1])[: steps.units.size]
    changes = steps.units - np.where(steps.is_first, 0.0, before)
    places = np.searchsorted(times, steps.times)
    result: Amount = np.cumsum(np.bincount(places, changes, times.size))
    return result


def _greatest(steps: FreeSteps, times: Micros) -> Amount:
    """Return the largest number of free units on one host at each of these times."""
    begins = np.searchsorted(times, steps.times)
    ends = np.append(begins[1:], times.size)[: begins.size]
    ends[np.append(steps.is_first[1:], True)[: begins.size]] = times.size
    levels = np.log2(ends - begins).astype(np.intp)
    # An entry of level k covers 2**k places. Two overlapping entries cover all places of a step.
    table = np.zeros((int(levels.max(initial=0)) + 1, times.size))
    np.maximum.at(table, (levels, begins), steps.units)
    np.maximum.at(table, (levels, ends - (1 << levels)), steps.units)
    for level in range(len(table) - 1, 0, -1):
        half = 1 << (level - 1)
        np.maximum(table[level - 1], table[level], out=table[level - 1])
        shifted = table[level - 1, half:]
        np.maximum(shifted, table[level, :-half], out=shifted)
    result: Amount = table[0]
    return result
