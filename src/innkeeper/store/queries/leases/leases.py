"""Database access for leases with their reservations and events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.lease_searches import EVERY_LEASE, LeaseSearch
from innkeeper.domain.leases import (
    EventRequest,
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    LeaseRequest,
    Reservation,
    ReservationRequest,
    ReservationState,
)
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.queries.leases import lease_searches
from innkeeper.store.tables.leases import lease_events, lease_projects, leases, reservations
from innkeeper.store.transactions import Tx

_LEASES = sa.select(*records.columns(leases, Lease, but=("reservations", "events", "shared_with")))
_BY_UUID = Prepared(_LEASES.where(leases.c.uuid == sa.bindparam("lease")))
_RESERVATIONS = PreparedForIds(
    sa.select(
        reservations.c.lease_id,
        *records.columns(
            reservations,
            Reservation,
            units_min=reservations.c.hosts_min,
            units_max=reservations.c.hosts_max,
        ),
    )
    .where(reservations.c.lease_id.in_(IDS))
    .order_by(reservations.c.id)
)
_EVENTS = PreparedForIds(
    sa.select(lease_events.c.lease_id, *records.columns(lease_events, LeaseEvent))
    .where(lease_events.c.lease_id.in_(IDS))
    .order_by(lease_events.c.id)
)
_SHARED = PreparedForIds(
    sa.select(lease_projects.c.lease_id, lease_projects.c.project_id)
    .where(lease_projects.c.lease_id.in_(IDS))
    .order_by(lease_projects.c.project_id)
)
_MOVE_EVENT = Prepared(
    lease_events.update()
    .where(lease_events.c.uuid == sa.bindparam("event"))
    .where(lease_events.c.state == sa.bindparam("seen"))
    .values(state=sa.bindparam("new"), updated_at=sa.bindparam("now"))
)
_HAS_BEGUN = sa.case((lease_events.c.state == LeaseEventState.BEGUN, 1), else_=0)
_DUE = (
    sa.select(leases.c.uuid)
    .join(lease_events, lease_events.c.lease_id == leases.c.id)
    .where(lease_events.c.kind.like(sa.bindparam("kind")))
    .where(lease_events.c.state.in_([LeaseEventState.WAITING, LeaseEventState.BEGUN]))
    .where(lease_events.c.due_at <= sa.bindparam("now"))
    .order_by(_HAS_BEGUN, lease_events.c.due_at, lease_events.c.id)
    .limit(sa.bindparam("most"))
)
_IS_ANY_DUE = (
    sa.select(lease_events.c.id)
    .where(lease_events.c.state.in_([LeaseEventState.WAITING, LeaseEventState.BEGUN]))
    .where(lease_events.c.due_at <= sa.bindparam("now"))
    .limit(1)
)


def _complete(tx: Tx, rows: Sequence[Any]) -> list[Lease]:
    """Build leases from their rows. Three queries read the reservations, events and projects."""
    found = {row[0]: row for row in rows}
    parts: dict[int, list[Reservation]] = {}
    for lease, *facts in _RESERVATIONS.rows(tx, found):
        parts.setdefault(lease, []).append(Reservation(*facts))
    events: dict[int, list[LeaseEvent]] = {}
    for lease, *facts in _EVENTS.rows(tx, found):
        events.setdefault(lease, []).append(LeaseEvent(*facts))
    projects: dict[int, list[str]] = {}
    for lease, project_id in _SHARED.rows(tx, found):
        projects.setdefault(lease, []).append(project_id)
    completed: list[Lease] = []
    for lease, row in found.items():
        more = (parts.get(lease, ()), events.get(lease, ()), projects.get(lease, ()))
        completed.append(Lease(*row, *map(tuple, more)))
    return completed


def add(tx: Tx, request: LeaseRequest, now: datetime) -> Lease:
    """Insert a lease with its reservations and events, without any holds."""
    values = {
        **{name: getattr(request, name) for name in ("uuid", "name", "project_id", "user_id")},
        **{"start_at": request.window.start, "end_at": request.window.end},
        **{"ended_at": None, "is_deleted": False, "idle_since": None, "offered_to": None},
        **{"series_uuid": request.series_uuid, "idle_grace_s": request.idle_grace_s},
        **{"created_at": now, "updated_at": now},
    }
    tx.execute(leases.insert(), values)
    row = tx.execute(sa.select(leases.c.id).where(leases.c.uuid == request.uuid)).scalar_one()
    add_reservations(tx, row, request.reservations, now)
    add_events(tx, row, request.events, now)
    _add_projects(tx, row, request.shared_with)
    lease = by_uuid(tx, request.uuid)
    assert lease is not None, "it was just inserted"
    return lease


def add_reservations(
    tx: Tx, lease: int, requests: Sequence[ReservationRequest], now: datetime
) -> None:
    """Insert pending reservations of a lease, without holds."""
    rows = [
        {
            **{"uuid": each.uuid, "lease_id": lease, "resource_type": each.resource_type},
            **{"state": ReservationState.PENDING, "parameters": dict(each.parameters)},
            **demand_values(each),
            **{"is_missing": False, "is_changed": False},
            **{"aggregate_id": None, "group_uuid": None},
            **{"created_at": now, "updated_at": now},
        }
        for each in requests
    ]
    if rows:
        tx.execute(reservations.insert(), rows)


def demand_values(request: ReservationRequest) -> dict[str, Any]:
    """Return the columns of a reservation that contain its demand."""
    demand = request.demand
    amounts = None if demand.unit_amounts is None else dict(demand.unit_amounts)
    return {
        "hosts_min": demand.units_min,
        "hosts_max": demand.units_max,
        "unit_amounts": amounts,
        "affinity": demand.affinity,
    }


def add_events(tx: Tx, lease: int, requests: Sequence[EventRequest], now: datetime) -> None:
    """Insert waiting events of a lease."""
    rows = [
        {
            **records.values(each),
            **{"lease_id": lease, "state": LeaseEventState.WAITING},
            **{"failures": 0, "updated_at": now},
        }
        for each in requests
    ]
    if rows:
        tx.execute(lease_events.insert(), rows)


def share(tx: Tx, lease: int, projects: Collection[str]) -> None:
    """Set the other projects that may use a lease."""
    tx.execute(lease_projects.delete().where(lease_projects.c.lease_id == lease))
    _add_projects(tx, lease, projects)


def _add_projects(tx: Tx, lease: int, projects: Collection[str]) -> None:
    rows = [{"lease_id": lease, "project_id": each} for each in sorted(set(projects))]
    if rows:
        tx.execute(lease_projects.insert(), rows)


def by_uuid(tx: Tx, uuid: str) -> Lease | None:
    """Return the lease with this uuid, even if its owner has deleted it."""
    return next(iter(_complete(tx, _BY_UUID.rows(tx, {"lease": uuid}))), None)


def by_ids_of(tx: Tx, rows: Collection[int]) -> list[Lease]:
    """Return the leases with these row ids, even if their owners have deleted them."""
    return _complete(tx, by_ids.rows(tx, _LEASES.where(leases.c.id.in_(IDS)), rows))


def page(
    tx: Tx,
    *,
    project_id: str | None,
    before: int | None,
    limit: int,
    wanted: LeaseSearch = EVERY_LEASE,
) -> list[Lease]:
    """Return the leases of a project, or of all projects, that are not deleted, newest first.

    The leases of a project include those that are shared with it or offered to it. ``before`` is
    the row id of the last lease of the previous page.
    """
    query = lease_searches.narrowed(_LEASES, wanted).where(leases.c.is_deleted.is_(sa.false()))
    query = query.order_by(leases.c.id.desc()).limit(limit)
    if project_id is not None:
        is_owned = leases.c.project_id == project_id
        is_offered = leases.c.offered_to == project_id
        shared = sa.select(lease_projects.c.lease_id).where(
            lease_projects.c.project_id == project_id
        )
        others = sa.select(leases.c.id).where(is_offered).union_all(shared).limit(1)
        if tx.execute(others).first() is not None:
            query = query.where(is_owned | is_offered | leases.c.id.in_(shared))
        else:
            # Most projects see only their own leases. In SQLite and MariaDB, the index on the
            # project has these in the order of the page.
            query = query.where(is_owned)
    if before is not None:
        query = query.where(leases.c.id < before)
    return _complete(tx, tx.execute(query).all())


def change(tx: Tx, row: int, now: datetime, **values: Any) -> None:
    """Update columns of a lease."""
    tx.execute(leases.update().where(leases.c.id == row).values(**values, updated_at=now))


def change_reservation(tx: Tx, row: int, now: datetime, **values: Any) -> None:
    """Update columns of a reservation."""
    query = reservations.update().where(reservations.c.id == row)
    tx.execute(query.values(**values, updated_at=now))


def remove(tx: Tx, row: int) -> None:
    """Delete a lease, which must have no holds."""
    for table in (lease_events, lease_projects, reservations):
        tx.execute(table.delete().where(table.c.lease_id == row))
    tx.execute(leases.delete().where(leases.c.id == row))


def remove_reservation(tx: Tx, row: int) -> None:
    """Delete a reservation, which must have no holds."""
    tx.execute(reservations.delete().where(reservations.c.id == row))


# -- events


def is_any_due(tx: Tx, now: datetime) -> bool:
    """Return whether any event is due and not done."""
    return tx.execute(_IS_ANY_DUE, {"now": now}).first() is not None


def due(tx: Tx, kind: str, now: datetime, most: int) -> list[str]:
    """Return the leases whose event of this kind is due and not done.

    Waiting events come before begun ones, so that events that wait for an unreachable agent do not
    delay the others. Events of equal state are in the order of their due times. If a lease is over,
    only its end event counts.
    """
    query = _DUE
    if kind != LeaseEventKind.END:
        query = query.where(leases.c.ended_at.is_(None))
    pattern = f"{kind}%" if kind == LeaseEventKind.USER else kind
    return list(tx.execute(query, {"kind": pattern, "now": now, "most": most}).scalars())


def move_event(tx: Tx, event: LeaseEvent, state: str, now: datetime) -> bool:
    """Change the state of an event.

    Returns False if the event was no longer in the state of ``event``.
    """
    values = {"event": event.uuid, "seen": event.state, "new": state, "now": now}
    return _MOVE_EVENT.run(tx, [values]) == 1


def change_event(tx: Tx, event: LeaseEvent, now: datetime, **values: Any) -> None:
    """Update columns of an event."""
    query = lease_events.update().where(lease_events.c.uuid == event.uuid)
    tx.execute(query.values(**values, updated_at=now))


def remove_event(tx: Tx, event: LeaseEvent) -> None:
    """Delete an event."""
    tx.execute(lease_events.delete().where(lease_events.c.uuid == event.uuid))


def bring_forward(tx: Tx, event: LeaseEvent, now: datetime) -> None:
    """Make an event due now, and forget its earlier failures."""
    query = lease_events.update().where(lease_events.c.uuid == event.uuid)
    tx.execute(query.values(due_at=now, failures=0))
