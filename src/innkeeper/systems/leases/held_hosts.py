"""List the hosts that a lease holds, for the external check of leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.leases import Lease
from innkeeper.store.queries.leases import holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import freepool, rendering
from innkeeper.systems.leases.resource_types.catalogue import ResourceTypes


@dataclass(frozen=True, slots=True)
class HeldHost:
    """A host that a reservation holds, and the number of units on this host."""

    host_id: int
    name: str
    units: int


def by_reservation(tx: Tx, lease: Lease) -> dict[str, list[HeldHost]]:
    """Return the hosts that a lease holds, by the uuids of the lease's reservations."""
    held = holds.of_reservations(tx, [each.id for each in lease.reservations])
    hosts = freepool.members(tx, {hold.host_id for some in held.values() for hold in some})
    return {
        each.uuid: [
            HeldHost(hold.host_id, hosts[hold.host_id].name, hold.units) for hold in held[each.id]
        ]
        for each in lease.reservations
    }


def shown(
    lease: Lease, held: Mapping[str, Sequence[HeldHost]], types: ResourceTypes
) -> dict[str, Any]:
    """Return a lease as the API shows it, with the hosts of each reservation as ``allocations``."""
    body = rendering.shown(lease, types)
    reservations = [
        {**each, "allocations": [_host(host) for host in held.get(each["id"], ())]}
        for each in body["reservations"]
    ]
    return {**body, "reservations": reservations}


def _host(host: HeldHost) -> dict[str, Any]:
    return {"id": str(host.host_id), "hypervisor_hostname": host.name, "units": host.units}
