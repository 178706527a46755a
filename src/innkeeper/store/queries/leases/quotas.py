"""Database access for the quotas of projects, and for the resources that projects reserve."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.lease_limits import ReservedUnits
from innkeeper.domain.leases import Window
from innkeeper.store.queries.leases.holds import IS_PRESENT
from innkeeper.store.tables.leases import holds, lease_quotas, leases, reservations
from innkeeper.store.transactions import Tx

_UNITS = (
    sa.select(sa.func.coalesce(sa.func.sum(holds.c.units), 0))
    .where(holds.c.reservation_id == reservations.c.id)
    .correlate(reservations)
    .scalar_subquery()
)
# SELECT lease, window, (SELECT SUM(units) of its holds), hosts_max, unit_amounts
#  FROM reservations JOIN leases WHERE the lease is not over
_RESERVED = (
    sa.select(
        *(leases.c.id, leases.c.start_at, leases.c.end_at),
        *(_UNITS, reservations.c.hosts_max, reservations.c.unit_amounts),
    )
    .select_from(reservations)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(IS_PRESENT)
    .order_by(reservations.c.id)
)


def of_project(tx: Tx, project_id: str) -> dict[str, int]:
    """Return the limits that were set for this project, by name."""
    query = sa.select(lease_quotas.c.limits).where(lease_quotas.c.project_id == project_id)
    return dict(tx.execute(query).scalar_one_or_none() or {})


def replace(tx: Tx, project_id: str, limits: Mapping[str, int], now: datetime) -> None:
    """Replace all limits that were set for this project."""
    delete(tx, project_id)
    row = {"project_id": project_id, "limits": dict(limits), "updated_at": now}
    tx.execute(lease_quotas.insert(), row)


def delete(tx: Tx, project_id: str) -> None:
    """Remove the limits that were set for this project, if there are any."""
    tx.execute(lease_quotas.delete().where(lease_quotas.c.project_id == project_id))


def counts(tx: Tx, project_id: str, now: datetime) -> tuple[int, int]:
    """Return how many leases of a project are not over, and how many of these have not begun."""
    is_future = sa.case((leases.c.start_at > now, 1), else_=0)
    query = (
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(is_future), 0))
        .select_from(leases)
        .where(leases.c.project_id == project_id, leases.c.ended_at.is_(None))
    )
    present, future = tx.execute(query).one()
    return int(present), int(future)


def reserved(tx: Tx, project_id: str, window: Window) -> list[ReservedUnits]:
    """Return the units of a project's reservations that are not over and overlap a window.

    Slots that are still used on a failed host, and were replaced, do not count twice.
    """
    query = _RESERVED.where(
        leases.c.project_id == project_id,
        leases.c.start_at < window.end,
        leases.c.end_at > window.start,
    )
    return [
        ReservedUnits(lease, Window(start, end), min(int(units), most), amounts)
        for lease, start, end, units, most, amounts in tx.execute(query)
    ]
