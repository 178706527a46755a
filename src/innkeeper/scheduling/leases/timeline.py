"""Compute the use of the freepool's hosts over time, from the holds in the calendar.

Always true: windows are half-open. At the same moment, an end is therefore counted before a start.
Times are microseconds since 1970, as in the calendar. Sums are exact, because amounts are whole
numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.leases import UNITS_MAX
from innkeeper.snapshot.amounts import Amount, Indexes, Mask, Rows
from innkeeper.snapshot.calendar import Calendar, Micros

_KEY_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """The use of each host by holds in a window. There is one value per row of the calendar.

    ``is_whole`` is True where a hold of a whole host overlaps the window. ``is_shared`` is True
    where a hold of amounts overlaps the window. ``peaks`` has the highest sum of amounts at any
    moment, by resource class.
    """

    is_whole: Mask
    is_shared: Mask
    peaks: dict[str, Amount]


def use(
    calendar: Calendar,
    start: int,
    end: int,
    *,
    ignored: Collection[int] = (),
    classes: Collection[str] | None = None,
) -> Use:
    """Return the use by holds in a window. Holds of the reservations ``ignored`` do not count.

    Peaks are computed for ``classes``, or by default for all classes of the holds.
    """
    holds = overlapping(calendar, start, end, ignored)
    rows, is_whole = calendar.hold_rows[holds], calendar.hold_is_whole[holds]
    names = calendar.hold_amounts.keys() if classes is None else classes
    return Use(
        marked(calendar, rows[is_whole]),
        marked(calendar, rows[~is_whole]),
        _peaks(calendar, holds[~is_whole], start, end, names) if names else {},
    )


def overlapping(calendar: Calendar, start: int, end: int, ignored: Collection[int] = ()) -> Indexes:
    """Return the indexes of the holds that overlap a window."""
    is_in: Mask = (calendar.hold_starts < end) & (calendar.hold_ends > start)
    if ignored:
        is_in &= ~np.isin(calendar.hold_reservations, np.array(list(ignored), dtype=np.int64))
    return np.flatnonzero(is_in)


def marked(calendar: Calendar, rows: Indexes) -> Mask:
    """Return a mask of the calendar that is True for the given rows."""
    mask = np.zeros(calendar.host_count, dtype=np.bool_)
    mask[rows] = True
    return mask


def _peaks(
    calendar: Calendar, holds: Indexes, start: int, end: int, names: Collection[str]
) -> dict[str, Amount]:
    """Return the highest sums of amounts of the given holds, by class and row."""
    rows, begins = calendar.hold_rows[holds], calendar.hold_starts[holds]
    count = calendar.host_count
    is_later: Mask = begins > start
    last = np.full(count, start)
    np.maximum.at(last, rows[is_later], begins[is_later])
    # If no hold begins in the window, the sum only falls, so the first sum is the highest.
    rises: Mask = last > start
    rising = np.flatnonzero(rises)
    # Ends after the last start of their row also do not matter.
    over = holds[calendar.hold_ends[holds] <= last[rows]]
    steps = Timeline(calendar, rising, holds[rises[rows]], start, end, over=over)
    rows, present = rows[~is_later], holds[~is_later]
    peaks = {}
    for name in names:
        peaks[name] = np.bincount(rows, _amounts(calendar, name)[present], count).astype(np.float64)
        if rising.size:
            peaks[name][rising] = np.maximum.reduceat(steps.amounts(name), steps.firsts)
    return peaks


def _amounts(calendar: Calendar, name: str) -> Amount:
    column = calendar.hold_amounts.get(name)
    return np.zeros(calendar.hold_count) if column is None else column


class Timeline:
    """The use of the hosts in some rows of the calendar in a window, as steps over time.

    A step lasts until the next step of its row, or until the window ends. ``rows`` and ``times``
    have one value per step. Steps are sorted by row, then by time. ``firsts`` has the index of the
    first step of each row, which is at the start of the window.
    """

    def __init__(
        self,
        calendar: Calendar,
        rows: Indexes,
        holds: Indexes,
        start: int,
        end: int,
        *,
        over: Indexes | None = None,
        closed_from: Micros | None = None,
    ) -> None:
        """Compute the steps of ``rows`` from the starts and ends of holds.

        ``rows`` are in ascending order. Only the holds ``over`` count, or by default all holds in
        the window. ``closed_from`` has a time for each row of the calendar. From this time on, the
        row counts as held whole.
        """
        begins, ends = calendar.hold_starts, calendar.hold_ends
        self._calendar, self._bases = calendar, rows
        self._present = holds[begins[holds] <= start]
        self._later = holds[begins[holds] > start]
        self._over = holds[ends[holds] < end] if over is None else over
        self._closing = rows[:0] if closed_from is None else rows[closed_from[rows] < end]
        closed = self._closing if closed_from is None else closed_from[self._closing]
        changes = np.concatenate((self._later, self._over))
        at_rows = np.concatenate((rows, self._closing, calendar.hold_rows[changes]))
        begun = np.concatenate((np.maximum(closed, start), begins[self._later]))
        at_times = np.concatenate((np.full(rows.size, start), begun, ends[self._over]))
        self._order = in_order(at_rows, at_times, start, end)
        at_rows, at_times = at_rows[self._order], at_times[self._order]
        # If there are several starts and ends at one time, only the sum after the last of them
        # counts.
        is_last = (at_rows[1:] != at_rows[:-1]) | (at_times[1:] != at_times[:-1])
        self._lasts = np.flatnonzero(np.append(is_last, True)[: at_rows.size])
        self.rows: Indexes = at_rows[self._lasts]
        self.times: Micros = at_times[self._lasts]
        self.firsts: Indexes = np.searchsorted(self.rows, rows)
        self._lengths = np.diff(np.append(self.firsts, self.rows.size))

    def amounts(self, name: str) -> Amount:
        """Return the sum of the amounts of a class for each step."""
        return self._added(_amounts(self._calendar, name), 0.0)

    def wholes(self) -> Amount:
        """Return the number of holds of whole hosts for each step."""
        return self._added(self._calendar.hold_is_whole.astype(np.float64), 1.0)

    def shares(self) -> Amount:
        """Return the number of holds of amounts for each step."""
        return self._added((~self._calendar.hold_is_whole).astype(np.float64), 0.0)

    def _added(self, column: Amount, when_closed: float) -> Amount:
        """For each step, return the sum of a column over the holds that overlap this step."""
        present, later, over = self._present, self._later, self._over
        at_start = np.zeros(self._calendar.host_count)
        at_start += np.bincount(
            self._calendar.hold_rows[present], column[present], self._calendar.host_count
        )
        parts = (
            at_start[self._bases],
            np.full(self._closing.size, when_closed),
            column[later],
            -column[over],
        )
        sums: Amount = np.cumsum(np.concatenate(parts)[self._order])[self._lasts]
        before = np.append(0.0, sums[self.firsts[1:] - 1])[: self.firsts.size]
        sums -= np.repeat(before, self._lengths)
        return sums


def in_order(rows: Indexes, times: Micros, start: int, end: int) -> Indexes:
    """Return the indexes in the order of rows, then of times.

    All times are between ``start`` and ``end``.
    """
    span = end - start + 1
    if (int(rows.max(initial=0)) + 1) * span > _KEY_MAX:
        return np.lexsort((times, rows))
    # Sorting by one key is several times as fast as sorting by two.
    return np.argsort(rows * span + (times - start))


def slots(
    calendar: Calendar,
    unit_amounts: Mapping[str, int],
    used: Mapping[str, npt.NDArray[Any]],
    rows: Rows = slice(None),
) -> Amount:
    """Return how many units fit beside the used amounts, at most ``UNITS_MAX``.

    ``used`` has one amount per class for each of ``rows``. A row may occur several times.
    """
    fitting = np.full(calendar.leaves_at[rows].shape, float(UNITS_MAX))
    for name, amount in unit_amounts.items():
        if amount > 0:
            capacity = calendar.capacities.get(name)
            left = (0.0 if capacity is None else capacity[rows]) - used.get(name, np.zeros(1))
            np.minimum(fitting, np.floor(left / amount), out=fitting)
    np.maximum(fitting, 0.0, out=fitting)
    return fitting
