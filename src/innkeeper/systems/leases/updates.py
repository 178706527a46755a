"""Change leases: their dates, sizes and requirements. Add reservations to leases or remove them.

Source: the update rules of Blazar; ADR 0035.

Always true: a change is written completely or not at all. A reservation that has begun keeps all
its hosts and slots, and may get more. It also keeps its hosts while it still waits for other hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.errors import Conflict, Forbidden, Invalid
from innkeeper.domain.leases import (
    RESERVATIONS_MAX,
    ChosenHost,
    Demand,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseEventState,
    Reservation,
    ReservationRequest,
    ReservationState,
    Window,
)
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.requirements import Total
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.leases import freepool_usage, holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import (
    booking,
    events,
    freepool,
    handover,
    limits,
    nearest,
    notifications,
    refusals,
    resource_properties,
    slots,
)
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

OUT_OF_LEASE = "Datetime is out of lease limits"
LEFT_OVER = (
    f"{refusals.NOT_ENOUGH}: the lease still has servers on a failed host. In this time, the host "
    "leaves the freepool or belongs to another lease. Evacuate or delete these servers."
)


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """The requested changes of a lease.

    ``None`` means no change. ``reservations`` are changes of reservations, by id. ``added`` are
    requests for new reservations, and ``added_uuids`` are the ids of the new reservations.
    ``removed`` are the ids of reservations to remove. If the lease has no warning yet,
    ``warning_uuid`` is the id for a warning.
    """

    name: str | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    warn_at: datetime | None = None
    reservations: Mapping[str, Mapping[str, Any]] | None = None
    added: Sequence[Mapping[str, Any]] = ()
    added_uuids: Sequence[str] = ()
    removed: frozenset[str] = frozenset()
    warning_uuid: str = ""

    @property
    def changes_window(self) -> bool:
        """True if a new start or end is requested."""
        return self.start_at is not None or self.end_at is not None

    @property
    def is_rename(self) -> bool:
        """True if nothing but the name changes."""
        others = (self.reservations, self.added, self.removed, self.warn_at)
        return not self.changes_window and not any(others)


@dataclass(frozen=True, slots=True)
class _Part:
    """A reservation of the changed lease, with its new demand.

    ``reservation`` is ``None`` for a new reservation. ``units`` are the present units (whole hosts
    or slots) by host. The units on ``active`` hosts are already handed over to the project.
    ``left`` has failed hosts that the reservation holds without units. With ``is_named``, the
    request changes this reservation.
    """

    reservation: Reservation | None
    request: ReservationRequest
    units: Mapping[int, int]
    active: frozenset[int] = frozenset()
    left: frozenset[int] = frozenset()
    is_named: bool = True

    @property
    def demand(self) -> Demand:
        return self.request.demand

    @property
    def chosen_demand(self) -> Demand:
        """The demand for the choice of hosts.

        A reservation that has begun gets no more units if the request does not name it. But units
        on failed hosts are replaced.
        """
        if not self.is_live or self.is_named:
            return self.demand
        most = max(self.present + len(self.left), self.demand.units_min)
        return replace(self.demand, units_max=min(most, self.demand.units_max))

    @property
    def present(self) -> int:
        """The present units of the reservation, without the units on failed hosts."""
        has = sum(self.units.values())
        return has if self.reservation is None else min(has, self.reservation.units_max)

    @property
    def is_live(self) -> bool:
        return self.reservation is not None and self.reservation.is_live


def change(
    tx: Tx, decision: DecisionContext, lease: Lease, wanted: LeaseChange, context: LeaseContext
) -> Lease:
    """Change a lease, and carry out the events that are due now.

    Raises :class:`Invalid` for dates and reservations that cannot be changed in this way. Raises
    :class:`Conflict` if the changed lease does not fit.
    """
    if wanted.name is not None and wanted.name != lease.name:
        leases.change(tx, lease.id, context.now, name=wanted.name)
    if not wanted.is_rename:
        refusals.demand_not_over(lease)
        window = _window(lease, wanted, context.now)
        with limits.kept(tx, lease, window, context):
            _change_parts(tx, decision.follower.table, lease, wanted, window, context)
            _change_dates(tx, lease, window, context.now)
        if _change_warning(tx, lease, wanted, window, context.now):
            notifications.add(tx, notifications.WARNING_STOPPED, lease, context)
    notifications.add(tx, notifications.UPDATED, lease, context)
    return events.go_on(tx, lease.uuid, context)


def start_from(wanted: datetime, now: datetime) -> datetime:
    """Return the start of a lease. A wanted start in the current minute becomes ``now``.

    Raises :class:`Invalid` for an earlier start.
    """
    if wanted < minute_of(now):
        raise Invalid("Start date must be later than current date")
    return max(wanted, now)


def minute_of(moment: datetime) -> datetime:
    """Return the beginning of a moment's minute."""
    return moment.replace(second=0, microsecond=0)


def _window(lease: Lease, wanted: LeaseChange, now: datetime) -> Window:
    start, end = lease.start_at, lease.end_at
    if wanted.start_at is not None and wanted.start_at != minute_of(start):
        if lease.start_event.state != LeaseEventState.WAITING:
            raise Invalid("Cannot modify the start date of already started leases")
        start = start_from(wanted.start_at, now)
    if wanted.end_at is not None:
        minute = minute_of(now)
        if wanted.end_at < max(minute, minute_of(start)):
            raise Invalid("End date must be later than current and start date")
        # An end in the current minute means now, which is never before the start.
        end = max(wanted.end_at, now) if wanted.end_at == minute else wanted.end_at
    if end <= start:
        raise Invalid("End date must be later than current and start date")
    return Window(start, end)


def _change_parts(
    tx: Tx,
    table: HostTable,
    lease: Lease,
    wanted: LeaseChange,
    window: Window,
    context: LeaseContext,
) -> None:
    parts = _parts(tx, lease, wanted, context)
    removed = [each for each in lease.reservations if each.uuid in wanted.removed]
    if wanted.end_at is not None and window.end <= context.now:
        # The lease ends now, so its reservations need not fit.
        return
    demands = [each.demand for each in parts]
    resource_properties.demand_visible(tx, demands, context, lease)
    ignored = [each.id for each in lease.reservations]
    has_begun = lease.start_event.state != LeaseEventState.WAITING
    chosen = _choose(table, parts, window, ignored, context, has_begun=has_begun)
    left = [_left(tx, each) for each in parts]
    claimed = [[*some, *more] for some, more in zip(chosen, left, strict=True)]
    booking.claim(tx, demands, claimed, window, context, ignored)
    for part, some in zip(parts, chosen, strict=True):
        _write(tx, lease, part, {each.host_id: each.units for each in some}, context)
    for each in removed:
        _remove(tx, each, context)


def _parts(tx: Tx, lease: Lease, wanted: LeaseChange, context: LeaseContext) -> list[_Part]:
    given = wanted.reservations or {}
    present = {each.uuid: each for each in lease.reservations}
    if not (given.keys() | wanted.removed) <= present.keys():
        raise Invalid("Please enter valid reservation IDs")
    for each in lease.reservations:
        if given.get(each.uuid) and each.state not in ReservationState.PRESENT:
            raise Invalid(f"Reservation {each.uuid} was removed and cannot be changed")
    kept = [
        each
        for each in lease.reservations
        if each.uuid not in wanted.removed and each.state in ReservationState.PRESENT
    ]
    if wanted.added and len(kept) + len(wanted.added) > RESERVATIONS_MAX:
        raise Invalid(f"A lease has at most {RESERVATIONS_MAX} reservations.")
    held = holds.of_reservations(tx, [each.id for each in kept])
    requests, total = {}, Total()
    for each in kept:
        requests[each.id] = context.types.changed(
            tx, each, given.get(each.uuid, {}), lease.project_id
        )
        if given or wanted.added:
            # The limit is checked only if reservations are changed or added.
            total.add(requests[each.id].demand.requirements)
    changed = [
        _Part(
            each,
            requests[each.id],
            # A hold without units is kept until the lease ends, because old servers are on the
            # host.
            {hold.host_id: hold.units for hold in held[each.id] if hold.units},
            frozenset(hold.host_id for hold in held[each.id] if hold.is_active),
            frozenset(hold.host_id for hold in held[each.id] if not hold.units),
            is_named=each.uuid in given,
        )
        for each in kept
    ]
    fresh = context.types.resolve_all(tx, wanted.added, wanted.added_uuids, lease.project_id, total)
    return [*changed, *(_Part(None, each, {}) for each in fresh)]


def _choose(
    table: HostTable,
    parts: Sequence[_Part],
    window: Window,
    ignored: Sequence[int],
    context: LeaseContext,
    *,
    has_begun: bool,
) -> list[list[ChosenHost]]:
    """Choose units (hosts or slots) for all reservations.

    Raises :class:`NotEnough` if the lease does not fit. The error names the next window that would
    fit, or the latest end that would fit if the lease ``has_begun``.
    """
    for part in parts:
        if part.is_live and part.demand.units_max < part.present:
            raise _cannot_shrink(part)
    row_of = {host.host_id: row for row, host in enumerate(table.calendar.hosts)}
    kept = [{row_of[host]: units for host, units in each.units.items()} for each in parts]
    shut = {row_of[host] for each in parts for host in each.left}
    wholes = {row_of[host]: each.demand.is_whole for each in parts for host in each.left}
    if not booking.are_free(table, wholes, window, context, ignored):
        raise Conflict(LEFT_OVER, code=refusals.NO_FREE_HOST)
    changed = booking.Changed(ignored, kept, [each.is_live for each in parts], shut)
    demands = [each.chosen_demand for each in parts]
    found = booking.look(table, demands, window, context, changed)
    if isinstance(found, Lack):
        if has_begun:

            def fits(tried: Window) -> bool:
                return booking.are_free(table, wholes, tried, context, ignored) and not isinstance(
                    booking.look(table, demands, tried, context, changed), Lack
                )

            end = nearest.end(fits, window, context.now)
            raise refusals.of(found, demands, latest_end=end)
        other = nearest.window(table, demands, window, context, changed)
        raise refusals.of(found, demands, other)
    return booking.choices(table.calendar, found)


def _left(tx: Tx, part: _Part) -> list[ChosenHost]:
    """Return the failed hosts that a reservation holds without units."""
    some = [freepool.member(tx, host) for host in sorted(part.left)]
    return [ChosenHost(each.id, each.provider_id, each.provider_uuid, 0) for each in some]


def _cannot_shrink(part: _Part) -> Conflict:
    if part.demand.is_whole:
        return Conflict(refusals.NOT_ENOUGH, code=refusals.NO_FREE_HOST)
    return Conflict("An active reservation doesn't allow to reduce/replace its instances.")


def _write(
    tx: Tx, lease: Lease, part: _Part, units: Mapping[int, int], context: LeaseContext
) -> None:
    """Write the new demand and the new hosts of one reservation."""
    now, reservation = context.now, part.reservation
    if reservation is None:
        leases.add_reservations(tx, lease.id, [part.request], now)
        again = leases.by_uuid(tx, lease.uuid)
        assert again is not None, "the lease is being changed"
        row = next(each.id for each in again.reservations if each.uuid == part.request.uuid)
        holds.add(tx, row, units)
        return
    values = leases.demand_values(part.request)
    leases.change_reservation(
        tx, reservation.id, now, **values, parameters=dict(part.request.parameters)
    )
    gone = part.units.keys() - units.keys()
    _let_go(tx, gone, now)
    holds.remove(tx, reservation.id, gone)
    holds.add(tx, reservation.id, {host: units[host] for host in units.keys() - part.units.keys()})
    for host, count in units.items():
        if host in part.units and count != part.units[host]:
            holds.set_units(tx, reservation.id, host, count)
            if host in part.active and not reservation.is_whole:
                slots.set_count(tx, reservation.uuid, freepool.member(tx, host), count, now)
                freepool_usage.end(tx, reservation.uuid, [host], now)
                freepool_usage.begin(tx, reservation.id, [host], now)


def _let_go(tx: Tx, hosts: Sequence[int] | set[int], now: datetime) -> None:
    """Make all processes read the holds on these hosts again."""
    ids = [each.provider_id for each in freepool.members(tx, hosts).values()]
    providers.advance_all(tx, ids, now)


def _remove(tx: Tx, reservation: Reservation, context: LeaseContext) -> None:
    """Remove a reservation.

    An active reservation is closed, so that its hosts are returned later.
    """
    held = holds.of_reservation(tx, reservation.id)
    _let_go(tx, {each.host_id for each in held}, context.now)
    if reservation.state == ReservationState.PENDING and reservation.aggregate_id is None:
        holds.remove(tx, reservation.id, [each.host_id for each in held])
        leases.remove_reservation(tx, reservation.id)
    elif reservation.state in ReservationState.PRESENT:
        handover.close(tx, reservation, context)


def _change_dates(tx: Tx, lease: Lease, window: Window, now: datetime) -> None:
    if window == lease.window:
        return
    leases.change(tx, lease.id, now, start_at=window.start, end_at=window.end)
    if window.start != lease.start_at:
        leases.change_event(tx, lease.start_event, now, due_at=window.start)
    if window.end != lease.end_at:
        leases.change_event(tx, lease.end_event, now, due_at=window.end)


def _change_warning(
    tx: Tx, lease: Lease, wanted: LeaseChange, window: Window, now: datetime
) -> bool:
    """Move the warning of a lease. Return True if the warning is due again.

    Without ``warn_at``, the warning moves together with the end of the lease.
    """
    warning = lease.warning
    if wanted.warn_at is not None:
        if not window.start <= wanted.warn_at <= window.end:
            raise Forbidden(OUT_OF_LEASE)
        due_at = wanted.warn_at
    elif warning is None:
        return False
    else:
        distance: timedelta = lease.end_at - warning.due_at
        due_at = max(window.end - distance, window.start)
    if warning is None:
        request = EventRequest(wanted.warning_uuid, LeaseEventKind.BEFORE_END, due_at)
        leases.add_events(tx, lease.id, [request], now)
        return False
    state = LeaseEventState.WAITING if due_at > now else warning.state
    if due_at != warning.due_at:
        leases.change_event(tx, warning, now, due_at=due_at, state=state)
    return due_at != warning.due_at and state != warning.state
