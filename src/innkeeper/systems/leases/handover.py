"""Hand hosts and slots over to a reservation when it starts, and take them back when it ends.

Always true: each call changes at most a given number of hosts, so that other writers do not wait
for long. The next call continues where the last call stopped. A step and its record are written in
one transaction. So a step that is repeated after a crash takes effect only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from innkeeper.domain.compute import Host
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import Hold, Lease, Reservation, ReservationState, slot_class
from innkeeper.store.queries.leases import freepool as freepool_rows
from innkeeper.store.queries.leases import (
    freepool_usage,
    healing,
    holds,
    leases,
    preemptions,
    slot_servers,
)
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import deletions, resizing
from innkeeper.systems.leases import freepool, pools, slots
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

HOSTS_AT_ONCE = 50
"""The maximum number of hosts that one transaction hands over. For a lease of 1,000 hosts, the
transaction takes about 40 ms, and all other writers wait. The steps of several leases may share a
commit."""
CHILDREN_AT_ONCE = 20
"""The maximum number of hosts that get their first slots in one transaction. The limit is lower,
because these hosts need a new provider."""
DELETED_AT_ONCE = 100
"""The maximum number of servers that are deleted in one transaction."""


def begin(tx: Tx, lease: Lease, reservation: Reservation, context: LeaseContext) -> int:
    """Hand over some hosts of a pending reservation.

    The last step makes the reservation active. Return the number of hosts that were handed over,
    plus one for the last step. The result is 0 if all remaining hosts still have servers of an
    earlier lease.
    """
    waiting = holds.of_reservation(tx, reservation.id, is_active=False)
    if waiting or reservation.state == ReservationState.PENDING:
        reservation = _prepared(tx, lease, reservation, context)
    hosts = freepool.members(tx, [each.host_id for each in waiting])
    ready = _ready(tx, reservation, waiting, hosts, context)
    _give(tx, reservation, ready, {each.host_id: each.units for each in waiting}, context)
    done = [each.id for each in ready]
    holds.activate(tx, reservation.id, done)
    freepool_usage.begin(tx, reservation.id, done, context.now)
    if len(done) < len(waiting) or reservation.state != ReservationState.PENDING:
        return len(done)
    leases.change_reservation(tx, reservation.id, context.now, state=ReservationState.ACTIVE)
    return len(done) + 1


def _prepared(tx: Tx, lease: Lease, reservation: Reservation, context: LeaseContext) -> Reservation:
    """Create a reservation's aggregate if it is missing.

    For a reservation of slots, also create the missing class, flavor and server group.
    """
    if reservation.aggregate_id is not None:
        return reservation
    group = None
    if not reservation.is_whole:
        group = slots.publish(tx, lease, reservation, context.now)
    row = pools.create(tx, lease, reservation, context.now)
    leases.change_reservation(tx, reservation.id, context.now, aggregate_id=row, group_uuid=group)
    return msgspec.structs.replace(reservation, aggregate_id=row, group_uuid=group)


def _ready(
    tx: Tx,
    reservation: Reservation,
    waiting: Sequence[Hold],
    hosts: Mapping[int, Host],
    context: LeaseContext,
) -> list[Host]:
    """Return some hosts that can be handed over now.

    Hosts of ended leases are first taken back.
    """
    name, now = context.leasing.freepool_aggregate_name, context.now
    some = [hosts[each.host_id] for each in waiting]
    free = freepool.take_back(tx, some, name, now, HOSTS_AT_ONCE)
    if reservation.is_whole:
        good = dedications.empty_among(tx, free)
    else:
        own = {each.host_id: each.units for each in waiting}
        good = _with_room(tx, reservation, own, free)
        good -= preemptions.hosts_with(tx, good)
    found = [each for each in free if each.id in good][:HOSTS_AT_ONCE]
    return found if reservation.is_whole else slots.first(tx, found, CHILDREN_AT_ONCE)


def _with_room(
    tx: Tx, reservation: Reservation, own: Mapping[int, int], some: Sequence[Host]
) -> set[int]:
    """Return the hosts where the slots fit beside the active slots of other reservations."""
    capacities = freepool_rows.capacities(tx, [each.provider_id for each in some])
    used: dict[int, dict[str, int]] = {each.id: {} for each in some}
    rows = [
        *holds.others_active(tx, reservation.id, list(used)),
        *((each.id, own[each.id], reservation.unit_amounts) for each in some),
    ]
    for host, units, amounts in rows:
        for name, amount in (amounts or {}).items():
            used[host][name] = used[host].get(name, 0) + units * amount
    return {
        each.id
        for each in some
        if all(
            amount <= capacities[each.provider_id].get(name, 0)
            for name, amount in used[each.id].items()
        )
    }


def _give(
    tx: Tx,
    reservation: Reservation,
    some: Sequence[Host],
    units: Mapping[int, int],
    context: LeaseContext,
) -> None:
    """Hand over some hosts to a reservation, or slots on these hosts."""
    now = context.now
    if reservation.is_whole:
        dedications.dedicate_all(tx, some, Dedication.LEASED, reservation.uuid, now)
        pools.leave_freepool(tx, some, now)
    else:
        # After this advance, claims from earlier decisions about preemptible servers are refused.
        providers.advance_all(tx, [each.provider_id for each in some], now)
        slots.give(tx, reservation.uuid, [(each, units[each.id]) for each in some], now)
    pools.enter(tx, reservation.uuid, some, now)


def finish(tx: Tx, reservation: Reservation, context: LeaseContext) -> int:
    """Take back some hosts of a reservation.

    The last step deletes the reservation's aggregate, class and flavor. Return the number of
    changes. The number is 0 while all remaining hosts have servers that their agents must destroy.
    """
    if reservation.state == ReservationState.DELETED:
        return 0
    held = holds.of_reservation(tx, reservation.id)
    if reservation.state != ReservationState.ENDING:
        close(tx, reservation, context)
        if len(held) > HOSTS_AT_ONCE:
            # Closing many hosts to new servers takes as long as a whole step. So this step ends
            # here.
            return 1
    hosts = freepool.members(tx, [each.host_id for each in held if each.is_active])
    done = _delete_servers(tx, reservation, hosts, context)
    back = [each.host_id for each in held if not each.is_active]
    some = [hosts[row] for row in sorted(hosts)]
    back += _take(tx, reservation, some, context, max(0, HOSTS_AT_ONCE - len(back)))
    holds.remove(tx, reservation.id, back)
    freepool_usage.end(tx, reservation.uuid, back, context.now)
    if len(back) == len(held):
        _clean_up(tx, reservation, context)
        return done + len(back) + 1
    return done + len(back)


def close(tx: Tx, reservation: Reservation, context: LeaseContext) -> None:
    """Close a reservation to new servers. :func:`finish` later takes back the hosts."""
    if not reservation.is_whole and reservation.aggregate_id is not None:
        slots.withdraw(tx, reservation)
    leases.change_reservation(tx, reservation.id, context.now, state=ReservationState.ENDING)
    if reservation.is_whole:
        held = holds.of_reservation(tx, reservation.id, is_active=True)
        some = freepool.members(tx, [each.host_id for each in held]).values()
        ours = (Dedication.LEASED, reservation.uuid)
        left = [each for each in some if (each.dedication, each.dedicated_to) == ours]
        dedications.dedicate_all(tx, left, Dedication.ENDED, reservation.uuid, context.now)


def _delete_servers(
    tx: Tx, reservation: Reservation, hosts: Mapping[int, Host], context: LeaseContext
) -> int:
    if not hosts:
        return 0
    if reservation.is_whole:
        # Some hosts may already belong to the next reservation.
        names = [each.name for each in hosts.values() if each.dedicated_to == reservation.uuid]
        done = deletions.delete_some(
            tx,
            names,
            context.now,
            DELETED_AT_ONCE,
            service_down_time_s=context.service_down_time_s,
            initiator=context.initiator,
        )
        moved = resizing.to_confirm(tx, names, DELETED_AT_ONCE)
    else:
        done = delete_in_slots(tx, reservation.uuid, None, DELETED_AT_ONCE, context)
        moved = slot_servers.moved_away(tx, reservation.uuid, DELETED_AT_ONCE)
    # Some servers have moved away. Their moves are confirmed, because a revert would bring them
    # back to the returned hosts.
    return done + resizing.confirm_these(tx, moved, context.initiator, context.now)


def delete_in_slots(
    tx: Tx, reservation: str, host: str | None, most: int, context: LeaseContext
) -> int:
    """Begin to delete the servers in a reservation's slots, on one host or on all hosts."""
    uuids = slot_servers.to_delete(tx, reservation, host, context.seen_since, most)
    return deletions.delete_these(
        tx,
        uuids,
        context.now,
        service_down_time_s=context.service_down_time_s,
        initiator=context.initiator,
    )


def _take(
    tx: Tx, reservation: Reservation, some: Sequence[Host], context: LeaseContext, most: int
) -> list[int]:
    """Take back some of these hosts, or slots on these hosts. Return the ids of the hosts.

    Hosts and slots with servers are left out.
    """
    if not reservation.is_whole:
        free = slots.remove(tx, reservation.uuid, some, context.now, most)
        pools.leave(tx, reservation.uuid, free, context.now)
        return [each.id for each in free]
    # Some hosts may already belong to the next reservation.
    mine = [each for each in some if each.dedicated_to == reservation.uuid]
    name = context.leasing.freepool_aggregate_name
    kept = {each.id for each in mine}
    kept -= {each.id for each in freepool.take_back(tx, mine, name, context.now, most)}
    return [each.id for each in some if each.id not in kept]


def used_slots(tx: Tx, reservation: Reservation, host: Host) -> int:
    """Return the number of a reservation's slots on a host that servers use."""
    return healing.used_slots(tx, slots.child_of(host), slot_class(reservation.uuid))


def give_up(tx: Tx, reservation: Reservation, host: Host, context: LeaseContext) -> bool:
    """Take back one host from an active reservation, or the slots on this host.

    The reservation keeps its other hosts. If the host or the slots have servers, return False and
    change nothing.
    """
    if reservation.is_whole:
        if dedications.why_not_empty(tx, host) is not None:
            return False
        dedications.dedicate(tx, host, Dedication.ENDED, reservation.uuid, context.now)
        host = freepool.member(tx, host.id)
    return bool(_take(tx, reservation, [host], context, 1))


def _clean_up(tx: Tx, reservation: Reservation, context: LeaseContext) -> None:
    if not reservation.is_whole:
        slots.forget_class(tx, reservation.uuid)
    pools.remove(tx, reservation)
    made = {"aggregate_id": None, "group_uuid": None}
    state = {"state": ReservationState.DELETED}
    leases.change_reservation(tx, reservation.id, context.now, **made, **state)


def is_unfinished(tx: Tx, reservation: Reservation) -> bool:
    """Return True if a reservation still waits for hosts, or is still returning hosts."""
    if reservation.state == ReservationState.ACTIVE:
        return bool(holds.of_reservation(tx, reservation.id, is_active=False, most=1))
    return reservation.state in (ReservationState.PENDING, ReservationState.ENDING)
