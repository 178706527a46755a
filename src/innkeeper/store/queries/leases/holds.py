"""Who holds which hosts of the freepool, and when."""

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
    """Have a reservation hold hosts, which nobody else holds in its window."""
    if host_ids:
        tx.execute(
            holds.insert(), [{"reservation_id": reservation, "host_id": each} for each in host_ids]
        )


def held_in(tx: Tx, window: Window) -> set[int]:
    """The hosts that somebody holds at some moment of a window.

    One that ends when this one begins holds nothing in it, and the reverse.
    Of a lease that is over nothing is held, even if its window is not: what it still has, it
    is only cleared of.
    """
    query = _BY_LEASE.where(
        leases.c.ended_at.is_(None), leases.c.start_at < window.end, leases.c.end_at > window.start
    )
    return set(tx.execute(query).scalars())


def is_held(tx: Tx, host_id: int) -> bool:
    """Whether a lease that is not over holds a host, now or later."""
    query = _BY_LEASE.where(holds.c.host_id == host_id, leases.c.ended_at.is_(None))
    return tx.execute(query.limit(1)).first() is not None


def forget(tx: Tx, host_id: int) -> None:
    """Have nobody hold a host any more."""
    tx.execute(holds.delete().where(holds.c.host_id == host_id))


def of_lease(tx: Tx, lease: int) -> list[tuple[str, int]]:
    """What a lease holds: pairs of a reservation's id and a host's row."""
    query = (
        sa.select(reservations.c.uuid, holds.c.host_id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .where(reservations.c.lease_id == lease)
        .order_by(holds.c.host_id)
    )
    return [(uuid, host_id) for uuid, host_id in tx.execute(query)]


def remove(tx: Tx, lease: int, host_ids: Collection[int]) -> None:
    """Have a lease hold these hosts no more."""
    mine = sa.select(reservations.c.id).where(reservations.c.lease_id == lease)
    by_ids.run(
        tx,
        holds.delete().where(holds.c.host_id.in_(IDS), holds.c.reservation_id.in_(mine)),
        host_ids,
    )


def windows(tx: Tx) -> list[tuple[int, str, datetime, datetime]]:
    """What is held by leases that are not over: host, the lease's id, from when, before when.

    In the order of hosts and of beginnings.
    """
    query = _BY_LEASE.where(leases.c.ended_at.is_(None))
    query = query.order_by(holds.c.host_id, leases.c.start_at, leases.c.id)
    return [tuple(row) for row in tx.execute(query)]
