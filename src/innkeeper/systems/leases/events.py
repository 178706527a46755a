"""Find the events of leases that are due, and carry them out.

Always true: an event is a warning, the start or the end of a lease, or an event of a user. The
state of an event is changed by compare-and-update, in the same transaction as its effects. If an
event cannot be completed yet, it stays ``BEGUN``, and any process can continue it. Ends are carried
out before starts, so that a lease can take over a host when another lease ends.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.leases import (
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    ReservationState,
)
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import end_checks, handover, notifications
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

EVENTS_AT_ONCE = 10_000
"""The maximum number of events of each kind that one turn of the periodic task carries out. The
other events wait for the next turn."""
OPEN = (LeaseEventState.WAITING, LeaseEventState.BEGUN)
ORDER = (LeaseEventKind.BEFORE_END, LeaseEventKind.END, LeaseEventKind.START, LeaseEventKind.USER)
"""The order of events that are due: warnings come before ends, and ends before starts."""


def due(tx: Tx, now: datetime) -> list[str]:
    """Return the leases with due events, sorted by the kind of the event."""
    found = (uuid for kind in ORDER for uuid in leases.due(tx, kind, now, EVENTS_AT_ONCE))
    return list(dict.fromkeys(found))


def is_any_due(tx: Tx, now: datetime) -> bool:
    """Return True if any event is due."""
    return leases.is_any_due(tx, now)


def begin(tx: Tx, uuid: str, context: LeaseContext) -> bool:
    """Begin a lease's due events.

    This step is short, even for a lease with many hosts. Warnings and events of users are
    completed. A start or an end is only marked as ``BEGUN``. Return True if :func:`carry_out` has
    more to do.
    """
    lease = leases.by_uuid(tx, uuid)
    if lease is None:
        return False
    _tell_all(tx, lease, context)
    event = _due_step(lease, context.now)
    return event is not None and _moved(tx, event, LeaseEventState.BEGUN, context.now)


def carry_out(tx: Tx, uuid: str, context: LeaseContext) -> int:
    """Carry out as much as possible of a lease's due events. Return the number of changes."""
    lease = leases.by_uuid(tx, uuid)
    if lease is None:
        return 0
    told = _tell_all(tx, lease, context)
    event = _due_step(lease, context.now)
    if event is None:
        return told
    step = end if event.kind == LeaseEventKind.END else start
    return told + step(tx, lease, context)


def go_on(tx: Tx, uuid: str, context: LeaseContext) -> Lease:
    """Carry out the due events of a lease that was just changed.

    If the lease has begun, new hosts are handed over too.
    """
    lease = leases.by_uuid(tx, uuid)
    assert lease is not None, "the lease was just changed"
    has_begun = lease.start_event.state == LeaseEventState.DONE
    if has_begun and any(handover.is_unfinished(tx, each) for each in lease.reservations):
        leases.move_event(tx, lease.start_event, LeaseEventState.BEGUN, context.now)
    carry_out(tx, uuid, context)
    again = leases.by_uuid(tx, uuid)
    assert again is not None, "a lease that is not deleted stays"
    return again


def record_failure(tx: Tx, uuid: str, context: LeaseContext) -> bool:
    """Count an unexpected error of a lease's due events.

    After ``lease_event_retries_max`` retries, the event is ``FAILED``. Return True if the event is
    now ``FAILED``. If the end of a deleted lease has failed, the lease becomes visible again, and
    can be deleted again.
    """
    lease = leases.by_uuid(tx, uuid)
    if lease is None:
        return False
    due_ones = [each for each in lease.events if _is_message(each) and _is_due(each, context.now)]
    event = due_ones[0] if due_ones else _due_step(lease, context.now)
    if event is None:
        return False
    failures = event.failures + 1
    leases.change_event(tx, event, context.now, failures=failures)
    if failures <= context.leasing.lease_event_retries_max:
        return False
    leases.move_event(tx, event, LeaseEventState.FAILED, context.now)
    if event.kind == LeaseEventKind.END:
        _close_others(tx, lease, context.now)
        leases.change(tx, lease.id, context.now, is_deleted=False)
    return True


def _tell_all(tx: Tx, lease: Lease, context: LeaseContext) -> int:
    return sum(_tell(tx, lease, each, context) for each in lease.events if _is_message(each))


def _due_step(lease: Lease, now: datetime) -> LeaseEvent | None:
    """Return the end event of a lease if it is due. Otherwise, return the start event if it is due.

    A lease that has already ended has no start to carry out.
    """
    if _is_due(lease.end_event, now):
        return lease.end_event
    if lease.ended_at is None and _is_due(lease.start_event, now):
        return lease.start_event
    return None


def _is_message(event: LeaseEvent) -> bool:
    return event.kind == LeaseEventKind.BEFORE_END or event.is_users


def _tell(tx: Tx, lease: Lease, event: LeaseEvent, context: LeaseContext) -> int:
    is_due = _is_due(event, context.now)
    if not is_due or not leases.move_event(tx, event, LeaseEventState.DONE, context.now):
        return 0
    notifications.add(tx, notifications.of_event(event), lease, context)
    return 1


def _is_due(event: LeaseEvent, now: datetime) -> bool:
    # An event that has begun stays due, even if the clock was set back since.
    return event.state == LeaseEventState.BEGUN or (
        event.state == LeaseEventState.WAITING and event.due_at <= now
    )


def _moved(tx: Tx, event: LeaseEvent, state: str, now: datetime) -> bool:
    return event.state == state or leases.move_event(tx, event, state, now)


def start(tx: Tx, lease: Lease, context: LeaseContext) -> int:
    """Hand over some hosts to a lease that starts. Return the number of changes.

    The start event is done when every reservation has all of its hosts.
    """
    if not _moved(tx, lease.start_event, LeaseEventState.BEGUN, context.now):
        return 0
    done = 0
    for each in lease.reservations:
        if each.state == ReservationState.ENDING:
            # The reservation was removed from the lease.
            done += handover.finish(tx, each, context)
        elif each.state != ReservationState.DELETED:
            done += handover.begin(tx, lease, each, context)
        if done >= handover.HOSTS_AT_ONCE:
            break
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "the start of a lease does not remove the lease"
    if not any(handover.is_unfinished(tx, each) for each in again.reservations):
        _moved(tx, again.start_event, LeaseEventState.DONE, context.now)
        leases.change(tx, lease.id, context.now)
        notifications.add(tx, notifications.of_event(again.start_event), again, context)
        done += 1
    return done


def end(tx: Tx, lease: Lease, context: LeaseContext) -> int:
    """Delete the servers of a lease that ends, and return empty hosts to the freepool.

    Return the number of changes. After the first call, users can no longer use the lease, and other
    projects can reserve its hosts. The end event is done when the lease holds no more hosts.
    """
    if not _moved(tx, lease.end_event, LeaseEventState.BEGUN, context.now):
        return 0
    done = 0
    if lease.ended_at is None:
        end_checks.add(tx, lease, context)
        leases.change(tx, lease.id, context.now, ended_at=context.now)
        _leave_calendar(tx, lease, context)
    for each in lease.reservations:
        done += handover.finish(tx, each, context)
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "no other function removes the lease"
    if all(each.state == ReservationState.DELETED for each in again.reservations):
        _finish(tx, again, context)
        done += 1
    return done


def _leave_calendar(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    """Make all processes read the holds on the hosts of this lease again."""
    held = holds.providers_of(tx, [each.id for each in lease.reservations])
    providers.advance_all(tx, held, context.now)


def _finish(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    if lease.is_deleted:
        leases.remove(tx, lease.id)
        return
    _moved(tx, lease.end_event, LeaseEventState.DONE, context.now)
    _close_others(tx, lease, context.now)
    notifications.add(tx, notifications.of_event(lease.end_event), lease, context)


def _close_others(tx: Tx, lease: Lease, now: datetime) -> None:
    for each in lease.events:
        # Events that were not due before the end of the lease are never carried out.
        if each.kind != LeaseEventKind.END and each.state in OPEN:
            leases.move_event(tx, each, LeaseEventState.DONE, now)
