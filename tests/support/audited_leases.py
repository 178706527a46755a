"""Defects of the freepool and leases, beside those of the other rooms.

Always true: the rows before the defect are written as users write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import HostReservationRequest, LeaseRequest, Window
from innkeeper.domain.moves import Initiator
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.tables import compute, pclouds
from innkeeper.store.tables import leases as lease_tables
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases import leases as lease_rules
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.pclouds import host_flavors
from tests.support.clouds import NOW, Numbers

POOL = "b0000000-0000-4000-8000-000000000003"
IDS = Numbers()
TERMS = LeaseContext(60.0, Initiator("req-1", "project", "user"), NOW)
Plant = Callable[[Tx, Any], object]


def _wish() -> LeaseRequest:
    part = HostReservationRequest(IDS.uuid(), 1, 1)
    window = Window(NOW, NOW + timedelta(hours=1))
    return LeaseRequest(
        IDS.uuid(), "lease", "project", "user", window, (part,), IDS.uuid(), IDS.uuid()
    )


def furnish(tx: Tx) -> None:
    """Put the second host into a running lease."""
    freepool.add(tx, "h1", NOW)
    lease_rules.create(tx, _wish(), TERMS)


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
    other = leases.add(tx, _wish(), NOW)
    holds.add(tx, other.reservations[0].id, [_h1(tx)])


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
}
"""By the kind of the audit's finding."""
