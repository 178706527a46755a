"""Aggregates of leases: one for the freepool, and one for each reservation that has begun.

Blazar's clients expect these aggregates. The hosts of an aggregate are the hosts of the freepool or
of the reservation. Only this service changes these aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Conflict
from innkeeper.domain.leases import Lease, Reservation
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import owned_aggregates

KIND = "lease"
FREEPOOL_UUID = str(uuid5(NAMESPACE_URL, "innkeeper:freepool"))
PROJECT_KEY, OWNER_KEY, RESERVATION_KEY = "blazar:project", "blazar:owner", "reservation"


def uuid_of(reservation: str) -> str:
    """Return the uuid of a reservation's aggregate, given the reservation's uuid."""
    return str(uuid5(NAMESPACE_URL, f"innkeeper:reservation:{reservation}"))


def enter_freepool(tx: Tx, some: Sequence[Host], name: str, now: datetime) -> None:
    """Add hosts to the freepool's aggregate.

    If the aggregate is missing, it is created with this name.
    """
    row = owned_aggregates.by_uuid(tx, FREEPOOL_UUID)
    if row is None:
        if owned_aggregates.is_name_taken(tx, name):
            raise Conflict(
                f"Another aggregate is called '{name}'. Rename it, or choose another name for the "
                "freepool with the setting freepool_aggregate_name."
            )
        row = owned_aggregates.create(tx, FREEPOOL_UUID, name, KIND, now)
    owned_aggregates.add_hosts(tx, row, FREEPOOL_UUID, some, now)


def leave_freepool(tx: Tx, some: Sequence[Host], now: datetime) -> None:
    """Remove hosts from the freepool's aggregate."""
    row = owned_aggregates.by_uuid(tx, FREEPOOL_UUID)
    if row is not None:
        owned_aggregates.remove_hosts(tx, row, FREEPOOL_UUID, some, now)


def create(tx: Tx, lease: Lease, reservation: Reservation, now: datetime) -> int:
    """Create the aggregate of a reservation, with the reservation's id as its name."""
    metadata = _metadata(lease, reservation)
    uuid = uuid_of(reservation.uuid)
    return owned_aggregates.create(tx, uuid, reservation.uuid, KIND, now, metadata)


def set_owner(tx: Tx, lease: Lease, reservation: Reservation, now: datetime) -> None:
    """Write the new owner of a lease to the aggregate of a reservation that has begun."""
    assert reservation.aggregate_id is not None, "the reservation has begun"
    metadata = _metadata(lease, reservation)
    owned_aggregates.change(tx, reservation.aggregate_id, reservation.uuid, metadata, now)


def _metadata(lease: Lease, reservation: Reservation) -> dict[str, str]:
    return {
        PROJECT_KEY: lease.project_id,
        OWNER_KEY: lease.project_id,
        RESERVATION_KEY: reservation.uuid,
    }


def enter(tx: Tx, reservation: str, some: Sequence[Host], now: datetime) -> None:
    """Add hosts to the aggregate of a reservation, given the reservation's uuid."""
    uuid = uuid_of(reservation)
    row = owned_aggregates.by_uuid(tx, uuid)
    if row is not None:
        owned_aggregates.add_hosts(tx, row, uuid, some, now)


def leave(tx: Tx, reservation: str, some: Sequence[Host], now: datetime) -> None:
    """Remove hosts from the aggregate of a reservation, given the reservation's uuid."""
    uuid = uuid_of(reservation)
    row = owned_aggregates.by_uuid(tx, uuid)
    if row is not None:
        owned_aggregates.remove_hosts(tx, row, uuid, some, now)


def remove(tx: Tx, reservation: Reservation) -> None:
    """Remove a reservation's aggregate, which has no hosts any more."""
    if reservation.aggregate_id is not None:
        owned_aggregates.remove(tx, reservation.aggregate_id)
