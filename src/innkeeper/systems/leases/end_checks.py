"""Store messages about ended leases until they are delivered to the external check.

The external check is the operator's own service that approves leases.

Always true: a message is written in the transaction that ends the lease. Without an external check
there are no messages. Messages share the table of notifications, and have the type ``ON_END``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from innkeeper.domain.leases import Lease
from innkeeper.domain.notifications import LeaseNotification
from innkeeper.store.queries.leases import notifications
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import held_hosts
from innkeeper.systems.leases.context import LeaseContext

ON_END = "check.on-end"
"""The type of messages about ended leases. No notification has this type."""


def add(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    """Add a message that a lease ends, with the hosts that the lease still holds."""
    if context.leasing.lease_check_url is None:
        return
    body = held_hosts.shown(lease, held_hosts.by_reservation(tx, lease), context.types)
    uuid = str(uuid5(NAMESPACE_URL, f"{ON_END}/{lease.uuid}/{context.now.isoformat()}"))
    notifications.add(tx, uuid, ON_END, json.dumps(body), context.now)


def due(tx: Tx, now: datetime, most: int) -> list[LeaseNotification]:
    """Return messages to deliver, oldest first."""
    return notifications.due(tx, now, most, only=ON_END)


def remove(tx: Tx, message: LeaseNotification) -> None:
    """Delete a message that was delivered, or that failed too often."""
    notifications.remove(tx, [message.id])


def body_of(
    message: LeaseNotification, *, auth_url: str | None, region_name: str
) -> dict[str, Any]:
    """Return the body of the request to the external check. The body names the lease's owner."""
    lease: Mapping[str, Any] = json.loads(message.payload)
    context = {name: lease[name] for name in ("user_id", "project_id")}
    return {
        "context": {**context, "auth_url": auth_url, "region_name": region_name},
        "lease": lease,
    }
