"""Database access for leases with their reservations and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.leases import (
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    LeaseRequest,
    Reservation,
)
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.leases import lease_events, leases, reservations
from innkeeper.store.transactions import Tx

_LEASES = sa.select(*records.columns(leases, Lease, but=("reservations", "events")))
_RESERVATIONS = (
    sa.select(reservations.c.lease_id, *records.columns(reservations, Reservation))
    .where(reservations.c.lease_id.in_(IDS))
    .order_by(reservations.c.id)
)
_EVENTS = (
    sa.select(lease_events.c.lease_id, *records.columns(lease_events, LeaseEvent))
    .where(lease_events.c.lease_id.in_(IDS))
    .order_by(lease_events.c.id)
)
_HAS_BEGUN = sa.case((lease_events.c.state == LeaseEventState.BEGUN, 1), else_=0)
_DUE = (
    sa.select(leases.c.uuid)
    .join(lease_events, lease_events.c.lease_id == leases.c.id)
    .where(lease_events.c.kind == sa.bindparam("kind"))
    .where(lease_events.c.state.in_([LeaseEventState.WAITING, LeaseEventState.BEGUN]))
    .where(lease_events.c.due_at <= sa.bindparam("now"))
    .order_by(_HAS_BEGUN, lease_events.c.due_at, lease_events.c.id)
    .limit(sa.bindparam("most"))
)


def _complete(tx: Tx, rows: Sequence[Any]) -> list[Lease]:
    """Add reservations and events to leases, with two queries for any number of leases."""
    found = {row.id: Lease(*row) for row in rows}
    parts: dict[int, list[Reservation]] = {}
    for lease, *facts in by_ids.rows(tx, _RESERVATIONS, found):
        parts.setdefault(lease, []).append(Reservation(*facts))
    events: dict[int, dict[str, LeaseEvent]] = {}
    for lease, *facts in by_ids.rows(tx, _EVENTS, found):
        event = LeaseEvent(*facts)
        events.setdefault(lease, {})[event.kind] = event
    return [
        replace(each, reservations=tuple(parts.get(row, ())), events=events.get(row, {}))
        for row, each in found.items()
    ]


def add(tx: Tx, request: LeaseRequest, now: datetime) -> Lease:
    """Insert a lease, its reservations and its two events, without any holds."""
    start, end = request.window.start, request.window.end
    values = {
        **{name: getattr(request, name) for name in ("uuid", "name", "project_id", "user_id")},
        **{"start_at": start, "end_at": end, "ended_at": None, "is_deleted": False},
        **{"created_at": now, "updated_at": now},
    }
    tx.execute(leases.insert(), values)
    row = tx.execute(sa.select(leases.c.id).where(leases.c.uuid == request.uuid)).scalar_one()
    for each in request.reservations:
        bounds = {"hosts_min": each.hosts_min, "hosts_max": each.hosts_max}
        tx.execute(reservations.insert(), {"uuid": each.uuid, "lease_id": row, **bounds})
    for event in (
        LeaseEvent(request.start_uuid, LeaseEventKind.START, LeaseEventState.WAITING, start, now),
        LeaseEvent(request.end_uuid, LeaseEventKind.END, LeaseEventState.WAITING, end, now),
    ):
        tx.execute(lease_events.insert(), {"lease_id": row, **records.values(event)})
    lease = by_uuid(tx, request.uuid)
    assert lease is not None, "it was just inserted"
    return lease


def by_uuid(tx: Tx, uuid: str) -> Lease | None:
    """Return the lease with this uuid, even if its owner has deleted it."""
    return next(iter(_complete(tx, tx.execute(_LEASES.where(leases.c.uuid == uuid)).all())), None)


def page(tx: Tx, *, project_id: str | None, before: int | None, limit: int) -> list[Lease]:
    """Return the leases of a project, or of all projects, that are not deleted, newest first.

    ``before`` is the row id of the last lease of the previous page.
    """
    query = _LEASES.where(leases.c.is_deleted.is_(sa.false()))
    query = query.order_by(leases.c.id.desc()).limit(limit)
    if project_id is not None:
        query = query.where(leases.c.project_id == project_id)
    if before is not None:
        query = query.where(leases.c.id < before)
    return _complete(tx, tx.execute(query).all())


def change(tx: Tx, row: int, now: datetime, **values: Any) -> None:
    """Update columns of a lease."""
    tx.execute(leases.update().where(leases.c.id == row).values(**values, updated_at=now))


def remove(tx: Tx, row: int) -> None:
    """Delete a lease without holds."""
    tx.execute(lease_events.delete().where(lease_events.c.lease_id == row))
    tx.execute(reservations.delete().where(reservations.c.lease_id == row))
    tx.execute(leases.delete().where(leases.c.id == row))


# -- events


def due(tx: Tx, kind: str, now: datetime, most: int) -> list[str]:
    """Return the leases whose event of this kind is due and not done.

    Waiting events come before begun ones, and then earlier due times come first. So events that
    wait for an unreachable agent do not starve the others. Leases that are over need no start.
    """
    query = _DUE
    if kind == LeaseEventKind.START:
        query = query.where(leases.c.ended_at.is_(None))
    return list(tx.execute(query, {"kind": kind, "now": now, "most": most}).scalars())


def move_event(tx: Tx, event: LeaseEvent, state: str, now: datetime) -> bool:
    """Change the state of an event. Returns False if the state was no longer that of ``event``."""
    moved = tx.execute(
        lease_events.update()
        .where(lease_events.c.uuid == event.uuid, lease_events.c.state == event.state)
        .values(state=state, updated_at=now)
    )
    return moved.rowcount == 1


def bring_forward(tx: Tx, event: LeaseEvent, now: datetime) -> None:
    """Make an event due now."""
    tx.execute(lease_events.update().where(lease_events.c.uuid == event.uuid).values(due_at=now))
