"""Compute the free units for a demand on each host, as steps over time.

Always true: if a window begins during a step, the units of this step are free during the whole
window, including the cleaning time around the window.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases import requirements
from innkeeper.scheduling.leases.timeline import Timeline, in_order, overlapping, slots
from innkeeper.snapshot.amounts import Amount, Indexes, Mask
from innkeeper.snapshot.calendar import NEVER, Calendar, Micros


@dataclass(frozen=True, slots=True)
class Starts:
    """The possible starts of windows: from ``start``, and before ``end``.

    Each window is ``length`` microseconds long. The host must also be free for ``cleaning``
    microseconds before and after the window.
    """

    start: int
    end: int
    length: int = 1
    cleaning: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FreeSteps:
    """Free units by host and start. A step lasts until the next step of its row.

    Steps are sorted by row, then by time. Each row has a step at the first start. Consecutive steps
    of a row have different numbers.
    """

    rows: Indexes
    times: Micros
    units: Amount

    @property
    def is_first(self) -> Mask:
        """True for the first step of each row."""
        return _changes(self.rows)

    def without_repetition(self) -> FreeSteps:
        """Return the steps that change the number of free units."""
        differs = self.is_first | _changes(self.units)
        return FreeSteps(self.rows[differs], self.times[differs], self.units[differs])


def _changes(column: Indexes | Micros | Amount) -> Mask:
    """Return True for the first value, and where a value differs from the previous value."""
    result: Mask = np.append(True, column[1:] != column[:-1])[: column.size]
    return result


def free_steps(
    calendar: Calendar, demand: Demand, starts: Starts, usable: Mask, ignored: Collection[int] = ()
) -> FreeSteps:
    """Return how many units for a demand are free on each usable host, over time."""
    suits = usable & requirements.satisfied(demand.requirements, calendar)
    begin = starts.start - starts.cleaning
    end = starts.end + starts.length + starts.cleaning
    holds = overlapping(calendar, begin, end, ignored)
    holds = holds[suits[calendar.hold_rows[holds]]]
    closed_from = closings(calendar, starts.cleaning)
    steps = Timeline(calendar, np.flatnonzero(suits), holds, begin, end, closed_from=closed_from)
    free = FreeSteps(steps.rows, steps.times, _units(calendar, demand, steps))
    return _windowed(free.without_repetition(), starts).without_repetition()


def closings(calendar: Calendar, cleaning: int) -> Micros:
    """For each host, return the latest possible end of a window with its cleaning time.

    This is the time ``cleaning`` after the host leaves the freepool, because a host is not cleaned
    before it leaves.
    """
    closed_from: Micros = np.minimum(calendar.leaves_at, NEVER - cleaning) + cleaning
    return closed_from


def _units(calendar: Calendar, demand: Demand, steps: Timeline) -> Amount:
    wholes = steps.wholes()
    if demand.unit_amounts is None:
        is_empty: Mask = wholes + steps.shares() == 0
        return is_empty.astype(np.float64)
    used = {name: steps.amounts(name) for name in demand.unit_amounts}
    units = slots(calendar, demand.unit_amounts, used, steps.rows)
    units[wholes > 0] = 0.0
    if demand.affinity is False:
        np.minimum(units, 1.0, out=units)
    return units


def _windowed(free: FreeSteps, starts: Starts) -> FreeSteps:
    """Return the smallest number of free units in the window that begins at each start."""
    back, ahead = starts.cleaning, starts.length + starts.cleaning - 1
    if back == ahead == 0:
        begun = free.times < starts.end
        return FreeSteps(free.rows[begun], free.times[begun], free.units[begun])
    is_first, places = free.is_first, np.arange(free.rows.size)
    later = np.flatnonzero(~is_first)
    # As the window moves forward, it contains a step from ``enters`` until ``leaves``.
    enters = np.where(is_first, starts.start, free.times - ahead)
    leaves = free.times[later] + back
    rows = np.concatenate((free.rows, free.rows[later]))
    times = np.maximum(np.concatenate((enters, leaves)), starts.start)
    newest = np.concatenate((places, np.zeros_like(later)))
    oldest = np.concatenate((np.where(is_first, places, 0), later))
    order = np.flatnonzero(times < starts.end)
    order = order[in_order(rows[order], times[order], starts.start, starts.end)]
    rows, times = rows[order], times[order]
    newest, oldest = (np.maximum.accumulate(each[order]) for each in (newest, oldest))
    is_last = np.append((rows[1:] != rows[:-1]) | (times[1:] != times[:-1]), True)[: rows.size]
    units = _least(free.units, oldest[is_last], newest[is_last])
    return FreeSteps(rows[is_last], times[is_last], units)


def _least(values: Amount, firsts: Indexes, lasts: Indexes) -> Amount:
    """Return the smallest value in each range from a first to a last place."""
    levels = np.log2(lasts - firsts + 1).astype(np.intp)
    # An entry of level k is the smallest of 2**k values. Two overlapping entries cover any range.
    table = [values]
    for level in range(int(levels.max(initial=0))):
        half, least = 1 << level, table[-1].copy()
        np.minimum(least[:-half], table[-1][half:], out=least[:-half])
        table.append(least)
    known = np.array(table)
    result: Amount = np.minimum(known[levels, firsts], known[levels, lasts - (1 << levels) + 1])
    return result
