"""Search for another window or end, if a request for a lease was refused.

Always true: the lease fits into the present calendar with each result. Quotas are not considered.

The searches are bounded. So the lease may fit even if a search finds nothing.
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
"""The longest time by which a window may begin later than requested."""
SEARCHES_MAX = 200
"""The maximum number of searches for the windows of one series. A series of 100 leases needs at
least 100 searches."""
_MICROSECOND, _MINUTE = timedelta(microseconds=1), timedelta(minutes=1)


def window(
    table: HostTable,
    demands: Sequence[Demand],
    wanted: Window,
    context: LeaseContext,
    changed: Changed = NOT_CHANGED,
) -> Window | None:
    """Return the earliest window of the same length as ``wanted`` in which all demands fit.

    The window does not begin before ``wanted``. If it begins in the future, it begins at a whole
    minute, because the API shows only whole minutes. The hosts and slots of the reservations in
    ``changed`` count as free.
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
    """Return the latest end with which the window fits, or ``None`` if no end fits.

    The result is a whole minute after ``now`` and before the wanted end.
    """
    first = max(wanted.start, now).replace(second=0, microsecond=0) + _MINUTE

    def may_end(minutes: int) -> bool:
        return fits(Window(wanted.start, first + minutes * _MINUTE))

    # The wanted end is known not to fit. A window that fits also fits with any earlier end.
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
    """Return the earliest window for the first lease such that all leases of a series fit.

    All windows of the series are delayed by the same time. The search begins with the window with
    the index ``refused``. It gives up after :data:`SEARCHES_MAX` searches for single windows.
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
        # If a window must move further, all other windows are searched again.
        fitting = fitting + 1 if found == tried else 1
        moved = found.start - start
        if fitting == len(wanted):
            return Window(wanted[0].start + moved, wanted[0].end + moved)
        place = (place + 1) % len(wanted)
    return None
