"""Plants defects of the freepool and of leases, in addition to those of the other rooms.

Always true: the rows without the defect are written by the same functions as for users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.grouping import group_of_reservation
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    LeaseEventKind,
    LeaseRequest,
    ReservationRequest,
    ReservationState,
    ResourceTypeName,
    Window,
    slot_class,
)
from innkeeper.domain.moves import Initiator
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.tables import compute, pclouds, placement
from innkeeper.store.tables import leases as lease_tables
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import events as lease_events
from innkeeper.systems.leases import freepool, slots
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.pclouds import host_flavors
from tests.support.clouds import NOW, Numbers

POOL = "b0000000-0000-4000-8000-000000000003"
IDS = Numbers()
CONTEXT = LeaseContext(60.0, Initiator("req-1", "project", "user"), NOW)
WHOLE = Demand(1, 1)
Plant = Callable[[Tx, Any], object]


def _request(demand: Demand = WHOLE) -> LeaseRequest:
    kind = ResourceTypeName.HOST if demand.is_whole else ResourceTypeName.SLOT
    part = ReservationRequest(IDS.uuid(), kind, demand)
    window = Window(NOW, NOW + timedelta(hours=1))
    events = (
        EventRequest(IDS.uuid(), LeaseEventKind.START, window.start),
        EventRequest(IDS.uuid(), LeaseEventKind.END, window.end),
    )
    return LeaseRequest(IDS.uuid(), "lease", "project", "user", window, (part,), events)


def furnish(tx: Tx) -> None:
    """Put the second host into a running lease."""
    freepool.add(tx, "h1", {}, "freepool", NOW)
    made = leases.add(tx, _request(), NOW)
    holds.add(tx, made.reservations[0].id, {_h1(tx): 1})
    lease_events.start(tx, made, CONTEXT)


def _with_slots(tx: Tx) -> str:
    """Put the second host's slots into a running lease. Return the reservation's id."""
    freepool.add(tx, "h1", {}, "freepool", NOW)
    made = leases.add(tx, _request(Demand(2, 2, {"VCPU": 1}, affinity=True)), NOW)
    holds.add(tx, made.reservations[0].id, {_h1(tx): 2})
    lease_events.start(tx, made, CONTEXT)
    return made.reservations[0].uuid


def _member_lost(tx: Tx, _: Any) -> None:
    furnish(tx)
    tx.execute(compute.aggregate_hosts.delete().where(compute.aggregate_hosts.c.host_id == _h1(tx)))


def _slots_lost(tx: Tx, _: Any) -> None:
    uuid = _with_slots(tx)
    class_id = sa.select(placement.resource_classes.c.id).where(
        placement.resource_classes.c.name == slot_class(uuid)
    )
    those = placement.inventories.c.resource_class_id.in_(class_id.scalar_subquery())
    tx.execute(placement.inventories.update().where(those).values(total=1))


def _flavor_lost(tx: Tx, it: Any) -> None:
    flavors.delete(tx, group_lost(tx, it), by_lease=True)


def group_lost(tx: Tx, _: Any) -> str:
    """Delete the server group of a reservation, and return the reservation's id."""
    uuid = _with_slots(tx)
    groups.delete(tx, group_of_reservation(uuid)[0], by_lease=True)
    return uuid


def _start_lost(tx: Tx, _: Any) -> None:
    furnish(tx)
    tx.execute(lease_tables.reservations.update().values(state=ReservationState.PENDING))


def _child_moved(tx: Tx, it: Any) -> None:
    _with_slots(tx)
    table = placement.resource_providers
    values = {
        "parent_provider_id": it.provider_ids["h0"],
        "root_provider_id": it.provider_ids["h0"],
    }
    child = slots.child_of(hosts.by_name(tx, "h1"))
    tx.execute(table.update().where(table.c.uuid == child).values(**values))


def _unleased(tx: Tx, _: Any) -> None:
    furnish(tx)
    table = compute.hosts
    values = {"dedication": Dedication.FREEPOOL, "dedicated_to": None}
    tx.execute(table.update().where(table.c.name == "h1").values(**values))


def _pooled_too(tx: Tx, _: Any) -> None:
    furnish(tx)
    flavor = host_flavors.create(tx, POOL, "large", "", 1, NOW)
    row = {"host_flavor_id": flavor.id, "host_id": _h1(tx), "created_at": NOW}
    tx.execute(pclouds.pool_hosts.insert(), row)


def _held_twice(tx: Tx, _: Any) -> None:
    furnish(tx)
    other = leases.add(tx, _request(), NOW)
    holds.add(tx, other.reservations[0].id, {_h1(tx): 1})


def _kept_with_servers(tx: Tx, _: Any) -> None:
    table = compute.hosts
    tx.execute(lease_tables.freepool_hosts.insert(), {"host_id": _h0(tx), "created_at": NOW})
    tx.execute(table.update().where(table.c.name == "h0").values(dedication=Dedication.FREEPOOL))


def _h0(tx: Tx) -> int:
    return hosts.by_name(tx, "h0").id


def _h1(tx: Tx) -> int:
    return hosts.by_name(tx, "h1").id


PLANTS: Mapping[str, Plant] = {
    "wrong-leasing": _unleased,
    "in-both": _pooled_too,
    "overlapping-holds": _held_twice,
    "foreign-lodger": _kept_with_servers,
    "wrong-lease-members": _member_lost,
    "wrong-slots": _slots_lost,
    "wrong-lease-parts": _flavor_lost,
    "unfinished-lease": _start_lost,
    "wrong-slots-provider": _child_moved,
}
"""The functions that plant a defect, by the kind of the audit's finding."""
