"""Leases, their reservations and their events: found, listed and written."""

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
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.leases import lease_events, leases, reservations
from innkeeper.store.transactions import Tx

_LEASES = sa.select(
    leases.c.id,
    leases.c.uuid,
    leases.c.name,
    leases.c.project_id,
    leases.c.user_id,
    leases.c.start_at,
    leases.c.end_at,
    leases.c.ended_at,
    leases.c.is_deleted,
    leases.c.created_at,
    leases.c.updated_at,
)
_RESERVATIONS = (
    sa.select(
        reservations.c.lease_id,
        reservations.c.id,
        reservations.c.uuid,
        reservations.c.hosts_min,
        reservations.c.hosts_max,
    )
    .where(reservations.c.lease_id.in_(IDS))
    .order_by(reservations.c.id)
)
_EVENTS = (
    sa.select(
        lease_events.c.lease_id,
        lease_events.c.uuid,
        lease_events.c.kind,
        lease_events.c.state,
        lease_events.c.due_at,
        lease_events.c.updated_at,
    )
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


def _whole(tx: Tx, rows: Sequence[Any]) -> list[Lease]:
    """Leases with what belongs to them; as many queries for a hundred as for one."""
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
    """Write a new lease, its reservations and its two events; nothing is held yet."""
    tx.execute(
        leases.insert(),
        {
            "uuid": request.uuid,
            "name": request.name,
            "project_id": request.project_id,
            "user_id": request.user_id,
            "start_at": request.window.start,
            "end_at": request.window.end,
            "ended_at": None,
            "is_deleted": False,
            "created_at": now,
            "updated_at": now,
        },
    )
    row = tx.execute(sa.select(leases.c.id).where(leases.c.uuid == request.uuid)).scalar_one()
    for each in request.reservations:
        tx.execute(
            reservations.insert(),
            {
                "uuid": each.uuid,
                "lease_id": row,
                "hosts_min": each.hosts_min,
                "hosts_max": each.hosts_max,
            },
        )
    for kind, uuid, due_at in (
        (LeaseEventKind.START, request.start_uuid, request.window.start),
        (LeaseEventKind.END, request.end_uuid, request.window.end),
    ):
        tx.execute(
            lease_events.insert(),
            {
                "uuid": uuid,
                "lease_id": row,
                "kind": kind,
                "state": LeaseEventState.WAITING,
                "due_at": due_at,
                "updated_at": now,
            },
        )
    made = by_uuid(tx, request.uuid)
    assert made is not None, "it was just written"
    return made


def by_uuid(tx: Tx, uuid: str) -> Lease | None:
    """The lease with this id, also one that its owner has deleted."""
    return next(iter(_whole(tx, tx.execute(_LEASES.where(leases.c.uuid == uuid)).all())), None)


def page(tx: Tx, *, project_id: str | None, before: int | None, limit: int) -> list[Lease]:
    """Leases that are not deleted, the newest first: those of a project, or of all.

    ``before`` is the row of the one that ended the page before.
    """
    query = _LEASES.where(leases.c.is_deleted.is_(sa.false()))
    query = query.order_by(leases.c.id.desc()).limit(limit)
    if project_id is not None:
        query = query.where(leases.c.project_id == project_id)
    if before is not None:
        query = query.where(leases.c.id < before)
    return _whole(tx, tx.execute(query).all())


def change(tx: Tx, row: int, now: datetime, **values: Any) -> None:
    """Write columns of a lease."""
    tx.execute(leases.update().where(leases.c.id == row).values(**values, updated_at=now))


def remove(tx: Tx, row: int) -> None:
    """Forget a lease that holds nothing."""
    tx.execute(lease_events.delete().where(lease_events.c.lease_id == row))
    tx.execute(reservations.delete().where(reservations.c.lease_id == row))
    tx.execute(leases.delete().where(leases.c.id == row))


# -- events ------------------------------------------------------------------------------------


def due(tx: Tx, kind: str, now: datetime, most: int) -> list[str]:
    """The leases whose event of this kind is due and not done, the longest due first.

    Those that nobody has begun come before those that have: what waits for a silent agent,
    and may be a lot, keeps no other one from its turn. Of leases that are over, the start is
    nobody's business any more.
    """
    query = _DUE
    if kind == LeaseEventKind.START:
        query = query.where(leases.c.ended_at.is_(None))
    return list(tx.execute(query, {"kind": kind, "now": now, "most": most}).scalars())


def move_event(tx: Tx, event: LeaseEvent, state: str, now: datetime) -> bool:
    """Bring an event from where it was seen to a state; tells whether it was still there."""
    moved = tx.execute(
        lease_events.update()
        .where(lease_events.c.uuid == event.uuid, lease_events.c.state == event.state)
        .values(state=state, updated_at=now)
    )
    return moved.rowcount == 1


def bring_forward(tx: Tx, event: LeaseEvent, now: datetime) -> None:
    """Have an event be due now."""
    tx.execute(lease_events.update().where(lease_events.c.uuid == event.uuid).values(due_at=now))
