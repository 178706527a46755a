"""Searches for another window or end with which a refused request would fit.

Always true: each result fits into the present calendar. Quotas are not considered.

May be false: if a search finds nothing, nothing fits. The searches are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from innkeeper.domain.leases import LAST_MOMENT, Demand, Window
from innkeeper.scheduling.leases import windows
from innkeeper.snapshot.calendar import micros, moment_of
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.leases import booking
from innkeeper.systems.leases.booking import NOT_CHANGED, Changed
from innkeeper.systems.leases.context import LeaseContext

SEARCHED_AHEAD = timedelta(days=90)
"""How much later than requested a window may begin."""
SEARCHES_MAX = 200
"""The number of searches for a window of a series. A series of 100 leases needs at least 100."""
_MICROSECOND, _MINUTE = timedelta(microseconds=1), timedelta(minutes=1)


def window(
    table: HostTable,
    demands: Sequence[Demand],
    wanted: Window,
    context: LeaseContext,
    changed: Changed = NOT_CHANGED,
) -> Window | None:
    """Return the earliest window in which all demands fit, as long as the ``wanted`` window.

    The window does not begin before the ``wanted`` window. A start in the future is a whole minute,
    because the API shows only whole minutes. What the reservations in ``changed`` hold counts as
    free.
    """
    return _earliest(table, demands, wanted, _bound(wanted.start), context, changed)


def _bound(start: datetime) -> datetime:
    return start + min(SEARCHED_AHEAD, LAST_MOMENT - start)


def _earliest(
    table: HostTable,
    demands: Sequence[Demand],
    wanted: Window,
    before: datetime,
    context: LeaseContext,
    changed: Changed = NOT_CHANGED,
) -> Window | None:
    after, length = micros(wanted.start), micros(wanted.end) - micros(wanted.start)
    search = windows.WindowSearch(
        after,
        min(micros(before), micros(LAST_MOMENT) - length),
        length,
        context.cleaning // _MICROSECOND,
        changed.reservations,
    )
    able = booking.usable(table, context)
    able[list(changed.avoided)] = False
    found = windows.earliest(table.calendar, demands, search, able, context.seed)
    return None if found is None else Window(moment_of(found), moment_of(found + length))


def end(fits: Callable[[Window], bool], wanted: Window, now: datetime) -> datetime | None:
    """Return the latest end with which the window fits, as a whole minute before the wanted end.

    The end is after the present moment. If no end fits, the result is ``None``.
    """
    first = max(wanted.start, now).replace(second=0, microsecond=0) + _MINUTE

    def may_end(minutes: int) -> bool:
        return fits(Window(wanted.start, first + minutes * _MINUTE))

    # The wanted end does not fit. A window that fits also fits with any earlier end.
    most = -((first - wanted.end) // _MINUTE)
    if most <= 0 or not may_end(0):
        return None
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if may_end(middle) else (least, middle)
    return first + least * _MINUTE


def first_window(
    table: HostTable,
    demands: Sequence[Demand],
    wanted: Sequence[Window],
    refused: int,
    context: LeaseContext,
) -> Window | None:
    """Return the earliest first window with which all leases of a series fit.

    All windows of the series move by the same time. The window with the index ``refused`` is
    searched first. The search gives up after :data:`SEARCHES_MAX` searches for single windows.
    """
    moved, place, fitting = timedelta(), refused, 0
    for _ in range(SEARCHES_MAX):
        start, stop = wanted[place].start, wanted[place].end
        if LAST_MOMENT - stop < moved:
            return None
        tried = Window(start + moved, stop + moved)
        found = _earliest(table, demands, tried, _bound(start), context)
        if found is None:
            return None
        # If a window has to move further, each window that fitted before is searched again.
        fitting = fitting + 1 if found == tried else 1
        moved = found.start - start
        if fitting == len(wanted):
            return Window(wanted[0].start + moved, wanted[0].end + moved)
        place = (place + 1) % len(wanted)
    return None
