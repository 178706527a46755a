"""Replace failed hosts in the reservations of a lease.

A unit is a whole host or a slot. A hold is the units of one host that a reservation has.

Always true: units on usable hosts stay where they are. If a failed host has servers of an active
lease, the hold on this host is kept without units. The lease thus keeps these servers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import (
    ChosenHost,
    Demand,
    Hold,
    Lease,
    Reservation,
    ReservationState,
    Window,
)
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.leases import freepool_usage, holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import booking, freepool, handover, slots
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

HOSTS_AT_ONCE = 50
"""The maximum number of failed hosts that one transaction replaces for a reservation."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A reservation whose failed hosts are to be replaced.

    ``holds`` has the present holds by host. ``failed`` has the hosts to replace. ``chosen`` has the
    new units by host, without failed hosts.
    """

    reservation: Reservation
    demand: Demand
    holds: Mapping[int, Hold]
    failed: tuple[int, ...]
    chosen: Mapping[int, int]

    @property
    def target(self) -> int:
        """The number of units that the reservation should have on usable hosts."""
        present = sum(each.units for each in self.holds.values())
        return min(self.reservation.units_max, present)

    @property
    def lacks(self) -> int:
        """The number of units that other hosts must still provide."""
        return max(0, self.target - sum(self.chosen.values()))

    @property
    def surplus(self) -> int:
        """The number of units on failed hosts that the reservation can give up."""
        failed = sum(self.holds[each].units for each in self.failed)
        return max(0, sum(self.chosen.values()) + failed - self.target)

    @property
    def added(self) -> dict[int, int]:
        """The new number of units on each host that gets more units."""
        return {
            host: units
            for host, units in self.chosen.items()
            if host not in self.holds or units > self.holds[host].units
        }

    def excess(self, down: Collection[int]) -> int:
        """Return the number of units above the target, after failed hosts work again."""
        return max(0, self.usable(down) - self.target)

    def usable(self, down: Collection[int]) -> int:
        """Return the units on hosts that are not down."""
        return sum(units for host, units in self.chosen.items() if host not in down)


def parts_of(
    tx: Tx, lease: Lease, failed: Collection[int], context: LeaseContext
) -> list[Exchange]:
    """Return the pending and active reservations of a lease, with their failed hosts."""
    own = [each for each in lease.reservations if each.state in ReservationState.PRESENT]
    held = holds.of_reservations(tx, [each.id for each in own])
    parts = []
    for each in own:
        by_host = {hold.host_id: hold for hold in held[each.id]}
        some = tuple(sorted(by_host.keys() & set(failed))[:HOSTS_AT_ONCE])
        stay = {host: hold.units for host, hold in by_host.items() if host not in some}
        demand = context.types.changed(tx, each, {}, lease.project_id).demand
        parts.append(Exchange(each, demand, by_host, some, stay))
    return parts


def choose(
    table: HostTable, parts: Sequence[Exchange], lease: Lease, context: LeaseContext
) -> list[Exchange]:
    """Choose other hosts for the failed hosts of as many reservations as possible.

    Return all reservations. If no other hosts were found for a reservation, it is unchanged.
    """
    tried = {place for place, each in enumerate(parts) if each.lacks}
    while tried:
        places = sorted(tried)
        found = others(table, [parts[place] for place in places], lease, context)
        if not isinstance(found, Lack):
            better = dict(zip(places, found, strict=True))
            return [better.get(place, each) for place, each in enumerate(parts)]
        # No hosts were found for this reservation, but other reservations may still be healed.
        tried.discard(places[found.demand])
    return list(parts)


def others(
    table: HostTable,
    parts: Sequence[Exchange],
    lease: Lease,
    context: LeaseContext,
    *,
    avoided: Collection[int] = (),
    is_all_needed: bool = False,
) -> list[Exchange] | Lack:
    """Choose other hosts for the failed hosts, but no hosts in ``avoided``.

    As many units (hosts or slots) as possible are replaced. If no unit can be replaced, the result
    is a :class:`Lack`. With ``is_all_needed``, the result is a :class:`Lack` unless all units can
    be replaced.
    """
    row_of = {host.host_id: row for row, host in enumerate(table.calendar.hosts)}
    demands = []
    for each in parts:
        present = sum(each.chosen.values())
        is_indivisible = is_all_needed or each.reservation.affinity is True
        least = max(each.target, present) if is_indivisible else present + 1
        most = max(each.target, present, least)
        demands.append(replace(each.demand, units_min=min(least, most), units_max=most))
    own = [each.reservation.id for each in parts]
    kept = [
        {row_of[host]: units for host, units in each.chosen.items() if units and host in row_of}
        for each in parts
    ]
    # A held host without units still has servers of the lease, and is not chosen again.
    left = {h for each in parts for h, hold in each.holds.items() if not hold.units}
    shut = {row_of[each] for each in {*avoided, *left} if each in row_of}
    changed = booking.Changed(own, kept, [True] * len(parts), shut)
    try:
        found = booking.look(table, demands, _rest(lease, context), context, changed)
    except Invalid:
        # The lease requires a property that no host has now.
        return Lack(*[0] * len(fields(Lack)))
    if isinstance(found, Lack):
        return found
    units = [
        {one.host_id: one.units for one in some} for some in booking.choices(table.calendar, found)
    ]
    return [
        replace(each, chosen={**each.chosen, **some})
        for each, some in zip(parts, units, strict=True)
    ]


def _rest(lease: Lease, context: LeaseContext) -> Window:
    return Window(max(lease.start_at, context.now), lease.end_at)


def claim(tx: Tx, parts: Sequence[Exchange], lease: Lease, context: LeaseContext) -> None:
    """Claim the units (hosts or slots) on hosts that get more units."""
    some = [each for each in parts if each.added]
    chosen = [[_choice(tx, *pair) for pair in each.added.items()] for each in some]
    demands = [each.demand for each in some]
    own = [each.reservation.id for each in some]
    booking.claim(tx, demands, chosen, _rest(lease, context), context, own)


def _choice(tx: Tx, host_id: int, units: int) -> ChosenHost:
    host = freepool.member(tx, host_id)
    return ChosenHost(host_id, host.provider_id, host.provider_uuid, units)


def write(tx: Tx, part: Exchange, excess: int, context: LeaseContext) -> int:
    """Write the chosen units (hosts or slots), and remove the replaced and superfluous units.

    Return the number of changes.
    """
    row, added = part.reservation.id, part.added
    holds.add(tx, row, {host: units for host, units in added.items() if host not in part.holds})
    for host, units in added.items():
        if host in part.holds:
            _set_units(tx, part, host, units, context)
    changes, surplus = len(added), part.surplus
    for host in part.failed:
        if surplus or not part.holds[host].units:
            units = _lowered(tx, part, host, surplus, context)
            surplus -= part.holds[host].units - units
            changes += _lower(tx, part, host, units, context)
    for host in part.chosen.keys() - added.keys() if excess else ():
        units = _lowered(tx, part, host, excess, context)
        if units and part.reservation.affinity is True:
            # The slots stay together until one of the hosts can be given up.
            continue
        excess -= part.holds[host].units - units
        changes += _lower(tx, part, host, units, context)
    return changes


def _lowered(tx: Tx, part: Exchange, host: int, surplus: int, context: LeaseContext) -> int:
    """Return the number of units (hosts or slots) that a reservation keeps on a host.

    Slots with servers are always kept.
    """
    hold, reservation = part.holds[host], part.reservation
    used = 0
    if hold.is_active and not reservation.is_whole:
        used = handover.used_slots(tx, reservation, freepool.member(tx, host))
    return max(hold.units - surplus, min(used, hold.units))


def _lower(tx: Tx, part: Exchange, host: int, units: int, context: LeaseContext) -> int:
    """Lower the number of units (hosts or slots) of a reservation on a host.

    Return 1 if anything changed, or else 0.
    """
    hold, reservation = part.holds[host], part.reservation
    if units:
        if units != hold.units:
            _set_units(tx, part, host, units, context)
        return int(units != hold.units)
    member = freepool.member(tx, host)
    if hold.is_active and not handover.give_up(tx, reservation, member, context):
        if hold.units:
            holds.set_units(tx, reservation.id, host, 0)
            freepool_usage.end(tx, reservation.uuid, [host], context.now)
        return int(hold.units > 0)
    freepool_usage.end(tx, reservation.uuid, [host], context.now)
    holds.remove(tx, reservation.id, [host])
    providers.advance_all(tx, [member.provider_id], context.now)
    return 1


def _set_units(tx: Tx, part: Exchange, host: int, units: int, context: LeaseContext) -> None:
    reservation, member = part.reservation, freepool.member(tx, host)
    holds.set_units(tx, reservation.id, host, units)
    if part.holds[host].is_active and not reservation.is_whole:
        slots.set_count(tx, reservation.uuid, member, units, context.now)
        freepool_usage.end(tx, reservation.uuid, [host], context.now)
        freepool_usage.begin(tx, reservation.id, [host], context.now)
    providers.advance_all(tx, [member.provider_id], context.now)
