"""Find out when hosts or slots are free, for projects that want to reserve them.

Always true: an answer has only numbers and times. It names no leases, projects or hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import (
    LAST_MOMENT,
    Demand,
    Lease,
    LeaseStatus,
    ReservationState,
    Window,
)
from innkeeper.scheduling.leases import availability, requirements, windows
from innkeeper.snapshot.calendar import Calendar, micros, moment_of
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.leases import holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import booking, limits, resource_properties
from innkeeper.systems.leases.context import LeaseContext

INTERVALS_MAX = 1000
"""The maximum number of intervals in one answer."""
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AvailabilityQuestion:
    """A question about the free hosts or slots in a window.

    ``parameters`` are texts from the query, which the resource type converts to the parameters of a
    reservation. With a ``length``, the answer also has the earliest window of this length in which
    the reservation fits.
    """

    resource_type: str
    parameters: Mapping[str, str]
    amount: int | None
    window: Window
    length: timedelta | None = None


@dataclass(frozen=True, slots=True)
class FreeUnits:
    """The number of units (hosts or slots) that a lease could get throughout this interval."""

    window: Window
    units: int


@dataclass(frozen=True, slots=True)
class Availability:
    """The free units over time, and the earliest window in which ``amount`` units fit.

    The ``intervals`` begin at the start of the window in the question, and have no gaps. If there
    are too many intervals, the last intervals are left out.
    """

    amount: int
    intervals: tuple[FreeUnits, ...]
    earliest: Window | None


def of_reservation(
    tx: Tx, table: HostTable, question: AvailabilityQuestion, project_id: str, context: LeaseContext
) -> Availability:
    """Return when units for a reservation are free.

    Raises :class:`Invalid` if a new lease could not have such a reservation.
    """
    given = context.types.queried(question.resource_type, question.parameters, question.amount)
    # The reservation needs no id, because it is not stored.
    (request,) = context.types.resolve_all(tx, [given], [""], project_id)
    demand, calendar = request.demand, table.calendar
    resource_properties.demand_visible(tx, [demand], context)
    requirements.check_all(demand.requirements, calendar)
    usable, cleaning = booking.usable(table, context), context.cleaning // _MICROSECOND
    start, end = micros(question.window.start), micros(question.window.end)
    found = availability.free_units(calendar, demand, start, end, usable, cleaning)
    intervals = tuple(
        FreeUnits(Window(moment_of(since), moment_of(until)), units)
        for since, until, units in found[:INTERVALS_MAX]
    )
    nearest = None
    if question.length is not None:
        length = question.length // _MICROSECOND
        search = windows.WindowSearch(
            start, min(end, micros(LAST_MOMENT) - length), length, cleaning
        )
        at = windows.earliest(calendar, [demand], search, usable, context.seed)
        nearest = None if at is None else Window(moment_of(at), moment_of(at + length))
    return Availability(demand.units_min, intervals, nearest)


def latest_end(
    tx: Tx, table: HostTable, lease: Lease, limit: datetime, context: LeaseContext
) -> datetime:
    """Return the latest end to which a lease can be extended on its present hosts.

    The result is at most ``limit``. Quotas are not considered. Raises :class:`Invalid` for a lease
    that is over.
    """
    if lease.status in LeaseStatus.OVER:
        raise Invalid("A lease that is over cannot be extended.")
    longest = limits.longest(lease.project_id, context)
    until = limit if longest is None else min(limit, lease.start_at + longest)
    kept = [
        each
        for each in lease.reservations
        if each.state in (ReservationState.PENDING, ReservationState.ACTIVE)
    ]
    held = holds.of_reservations(tx, [each.id for each in kept])
    calendar = table.calendar
    row_of = _rows(calendar)
    demands = [
        (
            Demand(each.units_min, each.units_max, each.unit_amounts, each.affinity),
            np.array(
                [(row_of[hold.host_id], hold.units) for hold in held[each.id]], dtype=np.int64
            ).reshape(-1, 2),
        )
        for each in kept
    ]
    found = availability.latest_end(
        calendar,
        demands,
        micros(lease.end_at),
        micros(until),
        context.cleaning // _MICROSECOND,
        [each.id for each in lease.reservations],
    )
    return moment_of(found)


def _rows(calendar: Calendar) -> dict[int, int]:
    return {host.host_id: row for row, host in enumerate(calendar.hosts)}
