"""Queries for administrators: the holds of reservations on each host of the freepool.

The Reservation API calls these holds allocations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.queries.leases.holds import IS_PRESENT
from innkeeper.store.tables.leases import freepool_hosts, holds, leases, reservations
from innkeeper.store.transactions import Tx


class HostReservation(NamedTuple):
    """A reservation that holds a host, with its lease and the lease's window."""

    reservation_uuid: str
    lease_uuid: str
    start_at: datetime
    end_at: datetime


class HostReservationFilter(NamedTuple):
    """The ids of a lease and of a reservation to select.

    ``None`` selects all. If both ids are ``None``, reservations of leases that are over are left
    out.
    """

    lease_uuid: str | None = None
    reservation_uuid: str | None = None

    @property
    def is_any(self) -> bool:
        """Whether both ids are ``None``."""
        return self.lease_uuid is None and self.reservation_uuid is None


ANY = HostReservationFilter()
_RESERVATIONS = (
    sa.select(
        holds.c.host_id, reservations.c.uuid, leases.c.uuid, leases.c.start_at, leases.c.end_at
    )
    .select_from(holds)
    .join(reservations, reservations.c.id == holds.c.reservation_id)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(leases.c.is_deleted.is_(sa.false()))
)


def host_ids(tx: Tx, wanted: HostReservationFilter, *, after: int, limit: int) -> list[int]:
    """Return a page of hosts after the row ``after``, ordered by row id.

    A filter with a lease or reservation selects only the hosts that are held for it. Without such a
    filter, all hosts are listed.
    """
    if wanted.is_any:
        query = sa.select(freepool_hosts.c.host_id).where(freepool_hosts.c.host_id > after)
        query = query.order_by(freepool_hosts.c.host_id)
    else:
        query = _narrowed(_RESERVATIONS, wanted).with_only_columns(holds.c.host_id).distinct()
        query = query.where(holds.c.host_id > after).order_by(holds.c.host_id)
    return list(tx.execute(query.limit(limit)).scalars())


def of_hosts(
    tx: Tx, hosts: Collection[int], wanted: HostReservationFilter = ANY
) -> dict[int, list[HostReservation]]:
    """Return the reservations of these hosts, by host and ordered by start."""
    query = _narrowed(_RESERVATIONS.where(holds.c.host_id.in_(IDS)), wanted)
    query = query.order_by(leases.c.start_at, reservations.c.id)
    found: dict[int, list[HostReservation]] = {host: [] for host in hosts}
    for host, *facts in by_ids.rows(tx, query, hosts):
        found[host].append(HostReservation(*facts))
    return found


def _narrowed(
    query: sa.Select[*tuple[Any, ...]], wanted: HostReservationFilter
) -> sa.Select[*tuple[Any, ...]]:
    if wanted.is_any:
        return query.where(leases.c.ended_at.is_(None))
    if wanted.lease_uuid is not None:
        query = query.where(leases.c.uuid == wanted.lease_uuid)
    if wanted.reservation_uuid is not None:
        query = query.where(reservations.c.uuid == wanted.reservation_uuid)
    return query


def latest_end(tx: Tx, host_id: int) -> datetime | None:
    """Return the latest end of the leases that hold a host, or ``None`` if no lease holds it."""
    query = _of_live(sa.select(sa.func.max(leases.c.end_at)), host_id)
    found: datetime | None = tx.execute(query).scalar()
    return found


def parameters(tx: Tx, host_id: int) -> list[Mapping[str, Any]]:
    """Return the parameters of the reservations that hold a host, unless their leases are over."""
    return list(tx.execute(_of_live(sa.select(reservations.c.parameters), host_id)).scalars())


def _of_live(query: sa.Select[*tuple[Any, ...]], host_id: int) -> sa.Select[*tuple[Any, ...]]:
    return (
        query.select_from(holds)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(holds.c.host_id == host_id, IS_PRESENT)
    )


def is_handed_over(tx: Tx, host_id: int) -> bool:
    """Return whether a reservation has slots on a host now."""
    query = (
        sa.select(holds.c.host_id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .where(holds.c.host_id == host_id, holds.c.is_active.is_(sa.true()))
        .where(reservations.c.unit_amounts.is_not(None))
    )
    return tx.execute(query.limit(1)).first() is not None
