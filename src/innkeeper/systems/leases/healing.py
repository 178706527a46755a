"""Replace failed hosts in leases, and record which leases have lost hosts.

To heal a lease is to replace its failed hosts.

Always true: a lease is healed in one transaction, which first reads the lease's hosts and their
state again. A lease is changed only if a host failed, came back, or must be replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

import structlog

from innkeeper.domain.errors import Conflict
from innkeeper.domain.leases import Lease, LeaseEventState
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.store.queries.leases import healing as healing_rows
from innkeeper.store.queries.leases import leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import events, notifications, refusals, replacing
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.leases.replacing import Exchange

LOG = structlog.get_logger("innkeeper.leases")
CALM_MIN = 60
"""The number of minutes for which a replaced host is recorded, if the healing interval is
unlimited."""


@dataclass(frozen=True, slots=True)
class FailedHosts:
    """The uuids of the leases to heal, each with the failed hosts that the lease holds.

    ``silent`` has the failed hosts whose only known fault is that their agents are silent.
    """

    leases: Mapping[str, frozenset[int]]
    silent: frozenset[int]


def look(tx: Tx, context: LeaseContext) -> FailedHosts:
    """Return the leases that hold failed hosts, and the leases whose failed hosts may be back."""
    down = healing_rows.unusable(tx, context.seen_since)
    minutes = context.leasing.lease_healing_interval_min
    until = context.now + timedelta(minutes=minutes) if minutes else None
    held = healing_rows.holders(tx, down, context.now, until) if down else {}
    found = {uuid: frozenset(hosts) for uuid, hosts in held.items()}
    for uuid in healing_rows.flagged(tx, context.now - _calm(context)):
        found.setdefault(uuid, frozenset())
    return FailedHosts(found, frozenset(host for host, is_silent in down.items() if is_silent))


def _calm(context: LeaseContext) -> timedelta:
    return timedelta(minutes=context.leasing.lease_healing_interval_min or CALM_MIN)


def heal(
    tx: Tx, decision: DecisionContext, uuid: str, failed: Collection[int], context: LeaseContext
) -> bool:
    """Replace as many failed hosts of a lease as possible.

    Return True if anything was changed. Hosts that work again stay in the lease. If the lease is
    over, nothing is changed.
    """
    lease = leases.by_uuid(tx, uuid)
    if lease is None or not _is_open(lease, context):
        return False
    down = healing_rows.unusable(tx, context.seen_since).keys()
    parts = replacing.parts_of(tx, lease, down & set(failed), context)
    healed = replacing.choose(decision.follower.table, parts, lease, context)
    replacing.claim(tx, healed, lease, context)
    changes = sum(replacing.write(tx, each, each.excess(down), context) for each in healed)
    for each in healed:
        changes += _flag(tx, each, down, context)
    if not changes:
        return False
    again = events.go_on(tx, uuid, context)
    if _is_worse(healed, again):
        notifications.add(tx, notifications.DEGRADED, again, context)
    elif not again.is_degraded and lease.is_degraded:
        notifications.add(tx, notifications.HEALED, again, context)
    LOG.info("lease_healed", lease=uuid, is_degraded=again.is_degraded, changes=changes)
    return True


def swap(
    tx: Tx, decision: DecisionContext, uuid: str, host_id: int, context: LeaseContext
) -> Lease:
    """Move all units (hosts or slots) of a lease from one host to other hosts. Return the lease.

    If the host has servers, the lease keeps holding the host until the lease ends. Raises
    :class:`Conflict` if the lease is over or does not hold the host, or if the units fit on no
    other host.
    """
    lease = leases.by_uuid(tx, uuid)
    assert lease is not None, "the caller has found the lease"
    if not _is_open(lease, context):
        raise Conflict("The lease is over.")
    parts = [each for each in replacing.parts_of(tx, lease, {host_id}, context) if each.failed]
    if not parts:
        raise Conflict(f"The lease does not hold host {host_id}.")
    table = decision.follower.table
    found = replacing.others(table, parts, lease, context, avoided={host_id}, is_all_needed=True)
    if isinstance(found, Lack):
        raise refusals.of(found, [each.demand for each in parts])
    replacing.claim(tx, found, lease, context)
    for each in found:
        replacing.write(tx, each, 0, context)
        if each.reservation.is_live and not each.reservation.is_changed:
            leases.change_reservation(tx, each.reservation.id, context.now, is_changed=True)
    again = events.go_on(tx, uuid, context)
    notifications.add(tx, notifications.UPDATED, again, context)
    return again


def _is_worse(parts: Sequence[Exchange], lease: Lease) -> bool:
    """Return True if a reservation newly lacks hosts, or got new hosts after its start."""
    before = {each.reservation.uuid: each.reservation for each in parts}
    return any(each.added and each.reservation.is_live for each in parts) or any(
        each.is_missing and not before[each.uuid].is_missing
        for each in lease.reservations
        if each.uuid in before
    )


def _is_open(lease: Lease, context: LeaseContext) -> bool:
    is_failed = LeaseEventState.FAILED in (lease.start_event.state, lease.end_event.state)
    return lease.ended_at is None and lease.end_at > context.now and not is_failed


def _flag(tx: Tx, part: Exchange, down: Set[int], context: LeaseContext) -> int:
    """Record whether hosts of a reservation are missing, and whether hosts were replaced.

    Return 1 if the record changed, or else 0.
    """
    reservation = part.reservation
    is_missing, is_changed = reservation.is_missing, reservation.is_changed
    if part.lacks:
        is_missing = True
    elif part.usable(down) >= part.target:
        is_missing = False
    is_well = not is_missing and not part.holds.keys() & down and not part.excess(down)
    if part.added and reservation.is_live:
        is_changed = True
    elif is_well and context.now - reservation.updated_at >= _calm(context):
        is_changed = False
    if (is_missing, is_changed) == (reservation.is_missing, reservation.is_changed):
        return 0
    flags = {"is_missing": is_missing, "is_changed": is_changed}
    leases.change_reservation(tx, reservation.id, context.now, **flags)
    return 1
