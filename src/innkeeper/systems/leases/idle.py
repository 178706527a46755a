"""End leases early if they were unused for the time that their owners chose.

Always true: a lease is ended only in a transaction that found it unused. This transaction also
closes the lease's hosts, so no server that is booted at the same time is placed on them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

import structlog

from innkeeper.domain.leases import Lease, LeaseStatus
from innkeeper.store.queries.leases import idle, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import events, notifications
from innkeeper.systems.leases.context import LeaseContext

LOG = structlog.get_logger("innkeeper.leases")
LEASES_AT_ONCE = 500
"""The maximum number of leases that one transaction checks."""


@dataclass(frozen=True, slots=True)
class IdleCheck:
    """The leases to end, and the row after which the next check continues.

    Row 0 means that the next check begins at the first lease.
    """

    expired: tuple[str, ...]
    next_row: int


def is_any(tx: Tx) -> bool:
    """Return True if any active lease has a grace time.

    The grace time is the time after which an unused lease ends.
    """
    return bool(idle.candidates(tx, after=0, most=1))


def look(tx: Tx, after: int, context: LeaseContext, most: int = LEASES_AT_ONCE) -> IdleCheck:
    """Record which of the next active leases are in use, and return the leases to end.

    Only leases with a grace time are checked. A lease is in use while anything is allocated on its
    hosts or in its slots. If a lease is found unused for the first time, a notification is written.
    The unused time counts from this check, so it is never overestimated.
    """
    rows = idle.candidates(tx, after=after, most=most)
    found = leases.by_ids_of(tx, rows)
    used = _used(tx, found)
    idle.set_since(tx, [each.id for each in found if each.id in used and each.idle_since], None)
    unused = [each for each in found if each.id not in used]
    fresh = [each for each in unused if each.idle_since is None]
    idle.set_since(tx, [each.id for each in fresh], context.now)
    for each in fresh:
        notifications.add(tx, notifications.IDLE, each, context)
    expired = tuple(each.uuid for each in unused if _is_expired(each, context))
    return IdleCheck(expired, rows[-1] if len(rows) == most else 0)


def end(tx: Tx, uuid: str, context: LeaseContext) -> bool:
    """End a lease whose grace time is over.

    Return False if the lease is in use or has ended.
    """
    lease = leases.by_uuid(tx, uuid)
    if lease is None or lease.status != LeaseStatus.ACTIVE or not _is_expired(lease, context):
        return False
    if _used(tx, [lease]):
        idle.set_since(tx, [lease.id], None)
        return False
    leases.bring_forward(tx, lease.end_event, context.now)
    # For lists of leases by time, and for clients that read only the dates, the lease must be over
    # now.
    leases.change(tx, lease.id, context.now, end_at=context.now)
    again = leases.by_uuid(tx, uuid)
    assert again is not None, "the lease is about to end"
    events.end(tx, again, context)
    LOG.info("idle_lease_ended", lease=uuid, project=lease.project_id)
    return True


def _is_expired(lease: Lease, context: LeaseContext) -> bool:
    if lease.idle_grace_s is None or lease.idle_since is None:
        return False
    return context.now - lease.idle_since >= timedelta(seconds=lease.idle_grace_s)


def _used(tx: Tx, found: Collection[Lease]) -> set[int]:
    slots = {
        part.uuid: each.id for each in found for part in each.reservations if not part.is_whole
    }
    hosts = idle.with_used_hosts(tx, [each.id for each in found])
    return hosts | idle.with_used_slots(tx, slots)
