"""Find the starts and ends of leases that are due, and carry them out.

Always true: the state of an event is changed by compare-and-update, in the same transaction as its
effects. An event that cannot be completed yet stays ``BEGUN``, and any process retries it in every
turn. Ends are carried out before starts, so that one lease may follow another on the same host.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.compute import Host
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import Lease, LeaseEventKind, LeaseEventState
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases.context import LeaseContext

EVENTS_AT_ONCE = 1000
"""The number of events of each kind in one turn. Further events are still due in the next turn."""
DELETED_AT_ONCE = 100
"""The number of servers that are deleted in one transaction, which blocks all other writers."""


def due(tx: Tx, now: datetime) -> list[str]:
    """Return the leases with due events: first ending leases, then starting leases."""
    ends = leases.due(tx, LeaseEventKind.END, now, EVENTS_AT_ONCE)
    starts = leases.due(tx, LeaseEventKind.START, now, EVENTS_AT_ONCE)
    return list(dict.fromkeys((*ends, *starts)))


def carry_out(tx: Tx, uuid: str, context: LeaseContext) -> int:
    """Carry out as much as possible of a lease's due event. Return how much was done.

    A lease that is gone, or has no due event, is left alone.
    """
    lease = leases.by_uuid(tx, uuid)
    if lease is None:
        return 0
    if _is_due(lease, LeaseEventKind.END, context):
        return end(tx, lease, context)
    if lease.ended_at is None and _is_due(lease, LeaseEventKind.START, context):
        return start(tx, lease, context)
    return 0


def _is_due(lease: Lease, kind: str, context: LeaseContext) -> bool:
    event = lease.events[kind]
    return event.state != LeaseEventState.DONE and event.due_at <= context.now


def _moved(tx: Tx, lease: Lease, kind: str, state: str, now: datetime) -> bool:
    event = lease.events[kind]
    return event.state == state or leases.move_event(tx, event, state, now)


def start(tx: Tx, lease: Lease, context: LeaseContext) -> int:
    """Give a lease all of its hosts at once. Wait while any of them has servers of another lease.

    Returns the number of hosts.
    """
    held = holds.of_lease(tx, lease.id)
    found = [(uuid, freepool.member(tx, host_id)) for uuid, host_id in held]
    are_free = [freepool.take_back(tx, host, context.now) for _, host in found]
    if not all(are_free):
        _moved(tx, lease, LeaseEventKind.START, LeaseEventState.BEGUN, context.now)
        return 0
    if not _moved(tx, lease, LeaseEventKind.START, LeaseEventState.DONE, context.now):
        return 0
    for uuid, host in found:
        dedications.dedicate(tx, host, Dedication.LEASED, uuid, context.now)
    leases.change(tx, lease.id, context.now)
    return len(found)


def end(tx: Tx, lease: Lease, context: LeaseContext) -> int:
    """Close a lease's hosts, delete their servers, and return the empty hosts to the freepool.

    Returns the number of deleted servers and returned hosts. The first call ends the lease. The
    event is done when the lease holds no more hosts.
    """
    if not _moved(tx, lease, LeaseEventKind.END, LeaseEventState.BEGUN, context.now):
        return 0
    if lease.ended_at is None:
        leases.change(tx, lease.id, context.now, ended_at=context.now)
    held = holds.of_lease(tx, lease.id)
    closed = [_closed(tx, uuid, freepool.member(tx, host_id), context) for uuid, host_id in held]
    deleted = deletions.delete_some(
        tx,
        [host.name for host in closed if host is not None],
        context.now,
        DELETED_AT_ONCE,
        service_down_time_s=context.service_down_time_s,
        initiator=context.initiator,
    )
    given_back: list[int] = []
    for (_, host_id), host in zip(held, closed, strict=True):
        if host is None or freepool.take_back(tx, host, context.now):
            given_back.append(host_id)
    holds.remove(tx, lease.id, given_back)
    if len(given_back) == len(held):
        _finish(tx, lease, context.now)
    return deleted + len(given_back)


def _closed(tx: Tx, reservation: str, host: Host, context: LeaseContext) -> Host | None:
    """Close a host when its reservation ends, and return it.

    Returns ``None`` if the host is not dedicated to the reservation: before the reservation's
    start, and after the host was returned or went to the next reservation.
    """
    if host.dedicated_to != reservation:
        return None
    if host.dedication == Dedication.LEASED:
        dedications.dedicate(tx, host, Dedication.ENDED, reservation, context.now)
        return freepool.member(tx, host.id)
    return host


def _finish(tx: Tx, lease: Lease, now: datetime) -> None:
    if lease.is_deleted:
        leases.remove(tx, lease.id)
        return
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "only a deleted lease is removed"
    _moved(tx, again, LeaseEventKind.END, LeaseEventState.DONE, now)
