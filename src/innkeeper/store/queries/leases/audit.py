"""Queries for the audit of the freepool and leases."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from innkeeper.domain.hosts import OF_LEASES
from innkeeper.domain.leases import ReservationState
from innkeeper.store.by_ids import Only, narrowed
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.leases import freepool_hosts, holds, leases, reservations
from innkeeper.store.tables.pclouds import pool_hosts
from innkeeper.store.transactions import Tx


class FreepoolRow(NamedTuple):
    """A host's dedication, and whether the host is in the freepool and in a pool."""

    host_id: int
    name: str
    dedication: str | None
    dedicated_to: str | None
    is_in_freepool: bool
    is_in_pool: bool


class HostHolder(NamedTuple):
    """A reservation that holds a host, and whether the reservation's lease is running or over."""

    reservation: str
    is_running: bool
    is_over: bool


_KEPT = (
    sa.select(
        hosts.c.id,
        hosts.c.name,
        hosts.c.dedication,
        hosts.c.dedicated_to,
        freepool_hosts.c.host_id.is_not(None),
        pool_hosts.c.host_id.is_not(None),
    )
    .select_from(hosts)
    .outerjoin(freepool_hosts, freepool_hosts.c.host_id == hosts.c.id)
    .outerjoin(pool_hosts, pool_hosts.c.host_id == hosts.c.id)
    .where(hosts.c.dedication.in_(sorted(OF_LEASES)) | freepool_hosts.c.host_id.is_not(None))
    .order_by(hosts.c.id)
)


def kept(tx: Tx, only: Only = None) -> list[FreepoolRow]:
    """Return the hosts that are in the freepool or dedicated to leases.

    ``only`` selects hosts by name.
    """
    rows = narrowed(tx, _KEPT, hosts.c.name, only)
    return [FreepoolRow(*row) for row in rows]


def holders(tx: Tx) -> dict[int, list[HostHolder]]:
    """Return the reservations that hold each host as a whole, by the host's row id."""
    query = (
        sa.select(
            holds.c.host_id,
            reservations.c.uuid,
            holds.c.is_active.is_(sa.true()) & leases.c.ended_at.is_(None),
            leases.c.ended_at.is_not(None) | (reservations.c.state == ReservationState.ENDING),
        )
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(reservations.c.unit_amounts.is_(None))
        .order_by(holds.c.host_id, leases.c.start_at)
    )
    found: dict[int, list[HostHolder]] = {}
    for host_id, uuid, is_running, is_over in tx.execute(query):
        holder = HostHolder(uuid, bool(is_running) and not is_over, bool(is_over))
        found.setdefault(host_id, []).append(holder)
    return found
