"""Database access for undelivered notifications about leases."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.notifications import LeaseNotification
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.leases import lease_notifications
from innkeeper.store.transactions import Tx

_DUE = (
    sa.select(*records.columns(lease_notifications, LeaseNotification))
    .where(lease_notifications.c.due_at <= sa.bindparam("now"))
    .order_by(lease_notifications.c.id)
    .limit(sa.bindparam("most"))
)
_LAST = sa.select(sa.func.max(lease_notifications.c.id))
_DELETE = lease_notifications.delete().where(lease_notifications.c.id.in_(IDS))


def last_row(tx: Tx) -> int:
    """Return the highest row id of a waiting notification, or 0."""
    return tx.execute(_LAST).scalar() or 0


def add(tx: Tx, uuid: str, event_type: str, payload: str, now: datetime) -> None:
    """Insert a notification that is due now."""
    values = {"uuid": uuid, "event_type": event_type, "payload": payload, "failures": 0}
    tx.execute(lease_notifications.insert(), {**values, "due_at": now, "created_at": now})


def due(
    tx: Tx, now: datetime, most: int, *, only: str | None = None, but: str = ""
) -> list[LeaseNotification]:
    """Return the notifications that are due, oldest first.

    ``only`` is the type to return. Without ``only``, all types are returned except the type
    ``but``.
    """
    kind = lease_notifications.c.event_type
    chosen = kind != but if only is None else kind == only
    rows = tx.execute(_DUE.where(chosen), {"now": now, "most": most})
    return [LeaseNotification(*row) for row in rows]


def beyond(tx: Tx, kept: int, most: int, *, but: str) -> list[int]:
    """Return the row ids of all notifications except the newest ``kept``, oldest first.

    Returns at most ``most`` ids. Notifications of the type ``but`` are neither returned nor
    counted.
    """
    of_others = sa.select(lease_notifications.c.id).where(lease_notifications.c.event_type != but)
    newest = of_others.order_by(lease_notifications.c.id.desc())
    last = tx.execute(newest.offset(kept).limit(1)).scalar()
    if last is None:
        return []
    query = of_others.where(lease_notifications.c.id <= last)
    return list(tx.execute(query.order_by(lease_notifications.c.id).limit(most)).scalars())


def postpone(tx: Tx, row: int, failures: int, due_at: datetime) -> None:
    """Record a failed delivery, and when to try again."""
    query = lease_notifications.update().where(lease_notifications.c.id == row)
    tx.execute(query.values(failures=failures, due_at=due_at))


def remove(tx: Tx, rows: Collection[int]) -> None:
    """Delete notifications."""
    by_ids.run(tx, _DELETE, rows)
