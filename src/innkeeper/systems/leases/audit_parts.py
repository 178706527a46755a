"""Check and repair the aggregates, flavors and slots of active reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import (
    LeaseEventKind,
    LeaseEventState,
    ReservationState,
    reservation_of_class,
    slot_class,
)
from innkeeper.store.queries.leases import audit, leases
from innkeeper.store.queries.leases import audit_parts as audit_parts_rows
from innkeeper.store.queries.leases.audit import FreepoolRow, HostHolder
from innkeeper.store.queries.leases.audit_parts import AuditedReservation
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import owned_aggregates
from innkeeper.systems.leases import freepool, pools, slots
from innkeeper.systems.placement import classes

ROOM = "leases"
WRONG_MEMBERS = Invariant(
    ROOM,
    "wrong-lease-members",
    "the aggregates of the freepool and of reservations contain the right hosts",
    "Run `innkeeper audit --repair`, because users cannot edit these aggregates.",
    "adds the missing hosts, and removes the wrong hosts",
)
WRONG_SLOTS = Invariant(
    ROOM,
    "wrong-slots",
    "Placement has as many slots for a reservation on a host as the lease has reserved there",
    "Correct the inventory of the slots' resource class.",
    "writes the inventory again. Slots that servers use are not removed",
)
MISSING_PARTS = Invariant(
    ROOM,
    "wrong-lease-parts",
    "an active reservation has an aggregate, and for slots also a flavor and a server group; an "
    "ended reservation has none of them",
    "Delete the lease and create it again. If the lease has ended, delete the aggregate, flavor or "
    "group.",
    "creates a lost flavor or server group again",
)
UNFINISHED = Invariant(
    ROOM,
    "unfinished-lease",
    "an event of a lease is done only after all hosts were handed over or returned",
    "Set the state of the event to 'begun' in the database.",
    "begins the event again, so that the service completes the event",
)
WRONG_CHILD = Invariant(
    ROOM,
    "wrong-slots-provider",
    "the provider of a host's slots is below the host's own provider",
    "Move the provider below the host's provider, with the Placement API.",
)
INVARIANTS = (WRONG_MEMBERS, WRONG_SLOTS, MISSING_PARTS, UNFINISHED, WRONG_CHILD)


def meant(
    each: FreepoolRow, holders: Mapping[int, Sequence[HostHolder]]
) -> tuple[str | None, str | None]:
    """Return the dedication that a host's row should have.

    A dedication says which servers a host takes. If several dedications are possible, the present
    dedication is preferred.
    """
    if not each.is_in_freepool:
        return (None, None)
    host_holders = holders.get(each.host_id, ())
    running = [one.reservation for one in host_holders if one.is_running]
    if running:
        is_known = each.dedicated_to in running
        return (Dedication.LEASED, each.dedicated_to if is_known else running[0])
    # An ended reservation may still wait for servers on the host, or may have returned the host.
    if any(one.is_over and one.reservation == each.dedicated_to for one in host_holders):
        return (Dedication.ENDED, each.dedicated_to)
    return (Dedication.FREEPOOL, None)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about the aggregates, flavors, slots and events of leases."""
    for uuid, (missing, extra) in _wrong_members(tx).items():
        yield WRONG_MEMBERS.broken(
            uuid, f"aggregate {uuid} lacks the hosts {missing}, and wrongly has the hosts {extra}"
        )
    for key, (total, expected) in _wrong_slots(tx).items():
        yield WRONG_SLOTS.broken(
            _text(key), f"{_text(key)} has {total} slots in Placement, but should have {expected}"
        )
    for each in audit_parts_rows.all_reservations(tx):
        reason = _wrong_parts(each)
        if reason is not None:
            yield MISSING_PARTS.broken(each.uuid, f"reservation {each.uuid} {reason}")
    for lease, kind in audit_parts_rows.unfinished(tx):
        text = f"the {kind} of lease {lease} is marked as done, but is not complete"
        yield UNFINISHED.broken(lease, text)
    for host_id, provider in audit_parts_rows.misplaced_children(tx):
        yield WRONG_CHILD.broken(
            provider, f"provider {provider} of the slots on host {host_id} is not below the host"
        )


def _wrong_members(tx: Tx) -> dict[str, tuple[list[int], list[int]]]:
    """Return the missing and the wrong hosts, by aggregate. Correct aggregates are omitted."""
    holders = audit.holders(tx)
    meant_to = {each.host_id: meant(each, holders) for each in audit.kept(tx)}
    present = audit_parts_rows.members(tx, pools.KIND)
    expected: dict[str, set[int]] = {each: set() for each in present}
    for host_id, (dedication, _) in meant_to.items():
        if dedication == Dedication.FREEPOOL:
            expected.setdefault(pools.FREEPOOL_UUID, set()).add(host_id)
    for hold in audit_parts_rows.active_holds(tx):
        # After the end of a lease, the next lease may already have the host.
        if not hold.is_whole or meant_to[hold.host_id][1] == hold.reservation:
            expected.setdefault(pools.uuid_of(hold.reservation), set()).add(hold.host_id)
    return {
        uuid: (sorted(expected[uuid] - hosts), sorted(hosts - expected[uuid]))
        for uuid, hosts in present.items()
        if hosts != expected[uuid]
    }


def _wrong_slots(tx: Tx) -> dict[tuple[str, str], tuple[int, int]]:
    """Return each wrong number of slots, as a pair (number in Placement, number in the hold).

    A hold is the part of a host that a lease has reserved. The keys are pairs of a host's id and a
    resource class. If a provider belongs to no host, the provider replaces the host's id.
    """
    total = {
        (str(each.host_id or each.provider), each.class_name): each.total
        for each in audit_parts_rows.slot_inventories(tx)
    }
    expected = {
        (str(hold.host_id), slot_class(hold.reservation)): hold.units
        for hold in audit_parts_rows.active_holds(tx)
        if not hold.is_whole and hold.units
    }
    return {
        key: (total.get(key, 0), expected.get(key, 0))
        for key in sorted(total.keys() | expected.keys())
        if total.get(key, 0) != expected.get(key, 0)
    }


def _text(key: tuple[str, str]) -> str:
    return f"{key[0]}/{key[1]}"


def _wrong_parts(each: AuditedReservation) -> str | None:
    """Return which object of a reservation is missing or superfluous, or ``None``."""
    if each.aggregate_id is not None and each.aggregate is None:
        return "has an aggregate that does not exist"
    if each.state == ReservationState.ACTIVE:
        return _lacks(each)
    if each.state == ReservationState.DELETED and each.aggregate_id is not None:
        return "is over and still has an aggregate"
    if each.has_flavor and (each.aggregate_id is None or each.state == ReservationState.ENDING):
        return "has a flavor although it is not active"
    return None


def _lacks(each: AuditedReservation) -> str | None:
    """Return which object of an active reservation is missing, or ``None``."""
    if each.aggregate_id is None:
        return "is active and has no aggregate"
    if not each.is_whole and not each.has_flavor:
        return "is active and has no flavor"
    return None if each.has_group else "is active and its server group does not exist"


# -- repairs ---------------------------------------------------------------------------------


def correct_members(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Add hosts to aggregates and remove hosts, according to what reservations hold."""
    done = []
    for uuid, (missing, extra) in _wrong_members(tx).items():
        row = owned_aggregates.by_uuid(tx, uuid)
        if uuid not in keys or row is None:
            continue
        for host_id in missing:
            owned_aggregates.add_host(tx, row, uuid, freepool.member(tx, host_id), now)
        for host_id in extra:
            owned_aggregates.remove_host(tx, row, uuid, freepool.member(tx, host_id), now)
        done.append(f"aggregate {uuid} has the right hosts again")
    return done


def correct_slots(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set the numbers of slots in Placement to the numbers that reservations hold."""
    done = []
    for key, (_, expected) in _wrong_slots(tx).items():
        place, class_name = key
        reservation = reservation_of_class(class_name)
        if _text(key) not in keys or not place.isdigit() or reservation is None:
            continue
        host = freepool.member(tx, int(place))
        if expected:
            classes.ensure(tx, class_name, now)
            slots.set_count(tx, reservation, host, expected, now)
        elif not slots.remove(tx, reservation, [host], now, 1):
            continue
        done.append(f"{_text(key)} has {expected} slots")
    return done


def create_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Create the lost flavors and server groups of active reservations of slots."""
    done = []
    for each in audit_parts_rows.all_reservations(tx):
        is_lost = not each.has_flavor or not each.has_group
        is_complete = each.state == ReservationState.ACTIVE and each.aggregate is not None
        lease = leases.by_uuid(tx, each.lease) if each.uuid in keys else None
        if each.is_whole or not is_lost or not is_complete or lease is None:
            continue
        reservation = next(one for one in lease.reservations if one.uuid == each.uuid)
        slots.publish_lost(tx, lease, reservation, now)
        done.append(f"reservation {each.uuid} has its flavor and group again")
    return done


def begin_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Let the service complete starts and ends of leases that were marked as done too early."""
    done = []
    for uuid, kind in audit_parts_rows.unfinished(tx):
        lease = leases.by_uuid(tx, uuid)
        if uuid in keys and lease is not None:
            event = lease.start_event if kind == LeaseEventKind.START else lease.end_event
            leases.change_event(tx, event, now, state=LeaseEventState.BEGUN)
            done.append(f"the {kind} of lease {uuid} is continued")
    return done


REPAIRS = {
    WRONG_MEMBERS.kind: correct_members,
    WRONG_SLOTS.kind: correct_slots,
    MISSING_PARTS.kind: create_again,
    UNFINISHED.kind: begin_again,
}
