"""Slots: the units of a reservation on a host, which servers claim through Placement.

Source: ADR 0035.

Always true: while a reservation of slots is active, each of its hosts has a child provider
``blazar_<host>``. The child has an inventory of the reservation's class. The inventory's total is
the number of slots. The child is a sharing provider, but no other provider is in its aggregate. So
the child serves only its own host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid5

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.compute import Flavor, Host
from innkeeper.domain.errors import InUse, NotFound
from innkeeper.domain.grouping import ServerGroup, group_of_reservation
from innkeeper.domain.leases import Lease, Reservation, slot_class
from innkeeper.domain.placement import SHARES
from innkeeper.domain.placing import GroupPolicy
from innkeeper.store.queries.leases import freepool
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.placement import (
    aggregates,
    classes,
    inventories,
    inventories_of_class,
    providers,
    traits,
)

CHILD_PREFIX = "blazar_"
FLAVOR_PREFIX = "reservation:"
FLAVOR_KEY = "aggregate_instance_extra_specs:reservation"
AMOUNTS = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "disk_gb": "DISK_GB"}
NO_QUOTA = -1


def child_of(host: Host) -> str:
    """Return the uuid of a host's child provider for slots. The child may not exist yet."""
    return str(uuid5(UUID(host.provider_uuid), "slots"))


def ensure_child(tx: Tx, host: Host, now: datetime) -> str:
    """Get or create the child provider of a host. Return the child's uuid."""
    uuid = child_of(host)
    try:
        providers.get(tx, uuid)
    except NotFound:
        providers.create(tx, uuid, CHILD_PREFIX + host.name, host.provider_uuid, now=now)
        aggregates.join(tx, uuid, uuid, now)
        traits.replace(tx, uuid, None, [SHARES], now)
        freepool.change(tx, host.id, slots_uuid=uuid)
    return uuid


def remove_child(tx: Tx, host: Host, now: datetime) -> None:
    """Remove the child provider of a host, if the child exists and has no inventories."""
    try:
        providers.delete(tx, child_of(host), now)
    except (NotFound, InUse):
        return


def set_count(tx: Tx, reservation: str, host: Host, count: int, now: datetime) -> None:
    """Set the number of a reservation's slots on a host. The resource class must exist."""
    uuid, name = ensure_child(tx, host, now), slot_class(reservation)
    inventory = _inventory(count)
    present = inventories.listing(tx, uuid)
    if name not in {line.class_name for line in present.lines}:
        inventories.add(tx, uuid, name, inventory, now)
    else:
        inventories.change(tx, uuid, name, present.generation, inventory, now)


def first(tx: Tx, some: Sequence[Host], most: int) -> list[Host]:
    """Return as many of the first hosts as possible. At most ``most`` may lack a child provider."""
    known = inventories_of_class.known(tx, [child_of(each) for each in some])
    new = [child_of(each) not in known for each in some]
    return [each for place, each in enumerate(some) if sum(new[: place + 1]) <= most]


def give(tx: Tx, reservation: str, counts: Sequence[tuple[Host, int]], now: datetime) -> None:
    """Create a reservation's slots on several hosts. The resource class must exist."""
    name, children = slot_class(reservation), {child_of(host): host for host, _ in counts}
    for uuid in children.keys() - inventories_of_class.known(tx, list(children)):
        ensure_child(tx, children[uuid], now)
    wanted = {child_of(host): _inventory(count) for host, count in counts}
    inventories_of_class.add(tx, name, wanted, now)


def _inventory(count: int) -> Inventory:
    return Inventory(count, min_unit=1, max_unit=1, step_size=1, allocation_ratio=1.0)


def remove(tx: Tx, reservation: str, some: Sequence[Host], now: datetime, most: int) -> list[Host]:
    """Remove the slots of a reservation from hosts where no server uses the slots.

    Slots are removed from at most ``most`` hosts. Return the hosts that no longer have slots of the
    reservation.
    """
    children = [child_of(each) for each in some]
    left = inventories_of_class.remove_unused(tx, slot_class(reservation), children, now, most)
    return [each for each, uuid in zip(some, children, strict=True) if uuid not in left]


def publish(tx: Tx, lease: Lease, reservation: Reservation, now: datetime) -> str | None:
    """Create the class, the flavor and the server group of a reservation.

    Return the uuid of the group, or ``None`` if the reservation has no affinity.
    """
    classes.ensure(tx, slot_class(reservation.uuid), now)
    group = None
    if reservation.affinity is not None:
        group = _create_group(tx, lease, reservation, now)
    _create_flavor(tx, lease, reservation, group, now)
    return group


def publish_lost(tx: Tx, lease: Lease, reservation: Reservation, now: datetime) -> None:
    """Create the flavor and the server group of an active reservation if they are missing."""
    group = reservation.group_uuid
    if not flavors.by_public_ids(tx, [reservation.uuid]):
        _create_flavor(tx, lease, reservation, group, now)
    if group is None:
        return
    try:
        groups.get(tx, group)
    except NotFound:
        _create_group(tx, lease, reservation, now)


def _create_group(tx: Tx, lease: Lease, reservation: Reservation, now: datetime) -> str:
    uuid, name = group_of_reservation(reservation.uuid)
    wanted = ServerGroup(
        uuid=uuid,
        name=name,
        policy=GroupPolicy.AFFINITY if reservation.affinity else GroupPolicy.ANTI_AFFINITY,
        project_id=lease.project_id,
        user_id=lease.user_id,
        servers_per_host_max=None,
        created_at=now,
    )
    return groups.create(tx, wanted, NO_QUOTA).uuid


def _create_flavor(
    tx: Tx, lease: Lease, reservation: Reservation, group: str | None, now: datetime
) -> None:
    flavors.create(tx, flavor_of(reservation, group), now=now)
    for project_id in (lease.project_id, *lease.shared_with):
        flavors.add_project(tx, reservation.uuid, project_id)


def flavor_of(reservation: Reservation, group: str | None) -> Flavor:
    """Return the private flavor of a reservation, which is not stored yet."""
    source: Mapping[str, object] = reservation.parameters.get("flavor", {})
    amounts = reservation.unit_amounts or {}
    sizes = {
        field: int(str(source.get(field, amounts.get(name, 0)))) for field, name in AMOUNTS.items()
    }
    return Flavor(
        id=0,
        flavor_id=reservation.uuid,
        name=FLAVOR_PREFIX + reservation.uuid,
        ephemeral_gb=int(str(source.get("ephemeral_gb", 0))),
        swap_mb=int(str(source.get("swap_mb", 0))),
        is_public=False,
        extra_specs=_extra_specs(reservation, group),
        vcpus=sizes["vcpus"],
        memory_mb=sizes["memory_mb"],
        disk_gb=sizes["disk_gb"],
    )


def _extra_specs(reservation: Reservation, group: str | None) -> dict[str, str]:
    source = reservation.parameters.get("flavor", {}).get("extra_specs", {})
    specs = {
        **source,
        FLAVOR_KEY: reservation.uuid,
        f"resources:{slot_class(reservation.uuid)}": "1",
    }
    return specs if group is None else {**specs, "affinity_id": group}


def withdraw(tx: Tx, reservation: Reservation) -> None:
    """Delete the flavor and the group, so that no new servers can use the slots."""
    if flavors.by_public_ids(tx, [reservation.uuid]):
        flavors.delete(tx, reservation.uuid, by_lease=True)
    if reservation.group_uuid is not None:
        try:
            groups.delete(tx, reservation.group_uuid, by_lease=True)
        except NotFound:
            return


def forget_class(tx: Tx, reservation: str) -> None:
    """Delete the resource class of a reservation that has no more slots."""
    try:
        classes.delete(tx, slot_class(reservation))
    except (NotFound, InUse):
        return
