"""Records of how long hosts were in the freepool, and how long reservations had them.

Each record is a period, which has no end until the host is returned. Holds are about the present
and the future. Periods are about the past, and outlive the host and the lease.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.freepool_usage import FreepoolPeriod, ServerTime
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts, servers
from innkeeper.store.tables.leases import freepool_runs, holds, leases, reservations
from innkeeper.store.transactions import Tx

_COLUMNS = (
    *("host_id", "host_name", "reservation_uuid", "project_id", "is_whole", "units"),
    "started_at",
)
_HELD = (
    sa.select(
        holds.c.host_id,
        hosts.c.name,
        reservations.c.uuid,
        leases.c.project_id,
        sa.case((reservations.c.unit_amounts.is_(None), sa.true()), else_=sa.false()),
        holds.c.units,
    )
    .select_from(holds)
    .join(hosts, hosts.c.id == holds.c.host_id)
    .join(reservations, reservations.c.id == holds.c.reservation_id)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(holds.c.host_id.in_(IDS), holds.c.reservation_id == sa.bindparam("of"))
)


def join(tx: Tx, host_id: int, name: str, now: datetime) -> None:
    """Record that a host joins the freepool."""
    values = (host_id, name, None, None, True, 1, now)
    tx.execute(freepool_runs.insert(), dict(zip(_COLUMNS, values, strict=True)))


def begin(tx: Tx, reservation: int, host_ids: Collection[int], now: datetime) -> None:
    """Record that a reservation gets these hosts, or the slots that it holds on these hosts."""
    for part in by_ids.parts(host_ids):
        held = tx.execute(_HELD, {"ids": part, "of": reservation})
        rows = [dict(zip(_COLUMNS, (*each, now), strict=True)) for each in held]
        tx.execute(freepool_runs.insert(), rows)


def end(tx: Tx, reservation: str, host_ids: Collection[int], now: datetime) -> None:
    """Record that a reservation returns these hosts.

    Hosts that the reservation does not have are ignored.
    """
    those = freepool_runs.update().where(
        freepool_runs.c.host_id.in_(IDS),
        freepool_runs.c.reservation_uuid == reservation,
        freepool_runs.c.ended_at.is_(None),
    )
    by_ids.run(tx, those.values(ended_at=now), host_ids)


def leave(tx: Tx, host_id: int, now: datetime) -> None:
    """Record that a host leaves the freepool, and that no reservation has the host any more."""
    those = freepool_runs.update().where(freepool_runs.c.host_id == host_id)
    tx.execute(those.where(freepool_runs.c.ended_at.is_(None)).values(ended_at=now))


def between(tx: Tx, start: datetime, stop: datetime, most: int) -> list[FreepoolPeriod]:
    """Return at most ``most`` periods that overlap a window, ordered by their beginnings.

    A period is the time that a host was in the freepool, or that a reservation had the host.
    """
    ended = freepool_runs.c.ended_at
    query = (
        sa.select(*records.columns(freepool_runs, FreepoolPeriod))
        .where(freepool_runs.c.started_at < stop)
        .where(sa.or_(ended.is_(None), ended > start))
        .order_by(freepool_runs.c.id)
        .limit(most)
    )
    return [FreepoolPeriod(*row) for row in tx.execute(query)]


def server_times(
    tx: Tx, names: Collection[str], start: datetime, stop: datetime, most: int
) -> list[ServerTime]:
    """Return at most ``most`` servers, also deleted ones, that ran on these hosts in a period."""
    query = (
        sa.select(servers.c.host, servers.c.flavor_id, servers.c.launched_at, servers.c.deleted_at)
        .where(servers.c.host.in_(IDS), servers.c.launched_at < stop)
        .where(sa.or_(servers.c.deleted_at.is_(None), servers.c.deleted_at > start))
        .limit(most)
    )
    return [ServerTime(*row) for row in by_ids.rows(tx, query, sorted(names))]
