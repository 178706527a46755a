"""Database access for holds: hosts of the freepool that reservations hold in their windows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.leases import Window
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.leases import holds, leases, reservations
from innkeeper.store.transactions import Tx

_BY_LEASE = (
    sa.select(holds.c.host_id, leases.c.uuid, leases.c.start_at, leases.c.end_at)
    .join(reservations, reservations.c.id == holds.c.reservation_id)
    .join(leases, leases.c.id == reservations.c.lease_id)
)


def add(tx: Tx, reservation: int, host_ids: Collection[int]) -> None:
    """Add holds of a reservation. The hosts must have no other hold in its window."""
    if host_ids:
        tx.execute(
            holds.insert(), [{"reservation_id": reservation, "host_id": each} for each in host_ids]
        )


def held_in(tx: Tx, window: Window) -> set[int]:
    """Return the hosts with a hold in a window.

    Windows are half-open: a lease that ends when the window begins does not overlap it. Leases that
    are over do not count, even if the end of their windows is in the future.
    """
    query = _BY_LEASE.where(
        leases.c.ended_at.is_(None), leases.c.start_at < window.end, leases.c.end_at > window.start
    )
    return set(tx.execute(query).scalars())


def is_held(tx: Tx, host_id: int) -> bool:
    """Return whether a lease that is not over holds a host, now or in the future."""
    query = _BY_LEASE.where(holds.c.host_id == host_id, leases.c.ended_at.is_(None))
    return tx.execute(query.limit(1)).first() is not None


def remove_all(tx: Tx, host_id: int) -> None:
    """Delete all holds on a host."""
    tx.execute(holds.delete().where(holds.c.host_id == host_id))


def of_lease(tx: Tx, lease: int) -> list[tuple[str, int]]:
    """Return the holds of a lease, as pairs of (reservation's uuid, host's row id)."""
    query = (
        sa.select(reservations.c.uuid, holds.c.host_id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .where(reservations.c.lease_id == lease)
        .order_by(holds.c.host_id)
    )
    return [(uuid, host_id) for uuid, host_id in tx.execute(query)]


def remove(tx: Tx, lease: int, host_ids: Collection[int]) -> None:
    """Delete the holds of a lease on these hosts."""
    own = sa.select(reservations.c.id).where(reservations.c.lease_id == lease)
    those = holds.delete().where(holds.c.host_id.in_(IDS), holds.c.reservation_id.in_(own))
    by_ids.run(tx, those, host_ids)


def windows(tx: Tx) -> list[tuple[int, str, datetime, datetime]]:
    """Return the holds of leases that are not over, as rows of (host, lease's uuid, start, end).

    The rows are ordered by host and start.
    """
    query = _BY_LEASE.where(leases.c.ended_at.is_(None))
    query = query.order_by(holds.c.host_id, leases.c.start_at, leases.c.id)
    return [tuple(row) for row in tx.execute(query)]
