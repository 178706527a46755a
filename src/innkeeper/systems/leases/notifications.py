"""Write notifications about leases and preemptible servers.

A notification is a log record, and a row that is delivered to the operator's webhook.

Always true: a notification is written in the same transaction as the change. So there is no
notification about a change that was rolled back. Without a webhook there are no rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from innkeeper.domain.compute import Server
from innkeeper.domain.leases import Lease, LeaseEvent
from innkeeper.domain.notifications import LeaseNotification
from innkeeper.domain.preemption import Preemption
from innkeeper.store.queries.leases import leases, notifications
from innkeeper.store.transactions import Tx, note
from innkeeper.systems.leases import end_checks, rendering
from innkeeper.systems.leases.context import LeaseContext

TOPIC = "lease_notifications"
"""The topic of notifications for the store's listeners, which get JSON after the commit."""
CREATED, UPDATED, DELETED = "lease.create", "lease.update", "lease.delete"
IDLE = "lease.idle"
"""The type for a lease that nothing uses. The lease ends if it stays unused for its grace time."""
DEGRADED, HEALED = "lease.degraded", "lease.healed"
OF_EVENT = "lease.event."
WARNING_STOPPED = f"{OF_EVENT}before_end_lease.stop"
"""The type for a lease whose end was moved, so that the warning is due again."""
PREEMPTION_WARNING = "server.preemption_warning"
PREEMPTION_CANCELLED = f"{PREEMPTION_WARNING}.stop"
"""The type for a warned server whose host is not needed any more."""
PREEMPTED = "server.preempted"
FAILURES_MAX = 20
"""A notification is dropped after this many failed deliveries, which take more than two hours."""
PAUSE_MAX_S = 600.0
KEPT_MAX = 10_000
"""The maximum number of stored notifications. Above this number, the oldest notifications are
dropped. While the receiver is down, few deliveries are tried per second, and each notification is
tried ``FAILURES_MAX`` times. So without this maximum, there would be no limit."""
DROPPED_AT_ONCE = 1_000
"""The maximum number of notifications that one transaction drops. The transaction blocks all other
writers."""


def add(tx: Tx, event_type: str, lease: Lease, context: LeaseContext) -> None:
    """Write a notification about a change that this transaction has made to a lease.

    The notification shows the lease as it is now in the database. If the lease is no longer in the
    database, the notification shows ``lease``.
    """
    known = {"event_type": event_type, "lease_id": lease.uuid, "project_id": lease.project_id}
    note(tx, TOPIC, [json.dumps(known)])
    if context.leasing.lease_webhook_url is None:
        return
    present = leases.by_uuid(tx, lease.uuid) or lease
    _keep(tx, event_type, lease.uuid, {"lease": rendering.shown(present, context.types)}, context)


def add_of_server(
    tx: Tx, event_type: str, server: Server, given: Preemption, context: LeaseContext
) -> None:
    """Write a notification about a preemptible server and its warning."""
    shown = {
        "id": server.uuid,
        "name": server.name,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "host": given.host,
        "delete_at": rendering.microsecond(given.delete_at),
    }
    known = {"event_type": event_type, "server_id": server.uuid, "project_id": server.project_id}
    note(tx, TOPIC, [json.dumps(known)])
    if context.leasing.lease_webhook_url is not None:
        _keep(tx, event_type, server.uuid, {"server": shown}, context)


def _keep(
    tx: Tx, event_type: str, about: str, body: Mapping[str, Any], context: LeaseContext
) -> None:
    # The row id alone is not unique, because a restored database uses row ids again.
    key = f"{about}/{event_type}/{context.now.isoformat()}/{notifications.last_row(tx)}"
    uuid = str(uuid5(NAMESPACE_URL, key))
    payload = {
        "id": uuid,
        "event_type": event_type,
        "timestamp": rendering.microsecond(context.now),
        **body,
    }
    notifications.add(tx, uuid, event_type, json.dumps(payload), context.now)


def of_event(event: LeaseEvent) -> str:
    """Return the type of the notification about an event of a lease."""
    return OF_EVENT + rendering.event_type(event)


def due(tx: Tx, now: datetime, most: int) -> list[LeaseNotification]:
    """Return notifications to deliver now, oldest first.

    Messages to the external check are left out.
    """
    return notifications.due(tx, now, most, but=end_checks.ON_END)


def excess(tx: Tx) -> list[int]:
    """Return the row ids of the notifications to drop, because there are too many."""
    return notifications.beyond(tx, KEPT_MAX, DROPPED_AT_ONCE, but=end_checks.ON_END)


def delivered(tx: Tx, rows: Collection[int]) -> None:
    """Delete notifications that were delivered or dropped."""
    notifications.remove(tx, rows)


def failed(tx: Tx, notification: LeaseNotification, now: datetime) -> bool:
    """Record a failed delivery. Return True if the notification was dropped.

    The pause before the next delivery doubles each time, up to ``PAUSE_MAX_S``.
    """
    failures = notification.failures + 1
    if failures >= FAILURES_MAX:
        notifications.remove(tx, [notification.id])
        return True
    pause_s = min(2.0**notification.failures, PAUSE_MAX_S)
    notifications.postpone(tx, notification.id, failures, now + timedelta(seconds=pause_s))
    return False
