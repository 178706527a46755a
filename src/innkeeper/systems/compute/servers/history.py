"""Read the history of servers: when a server ran, and its actions with work orders as events.

The action that created a server is derived from the server's row. Events of old actions may be
missing, because ended orders are deleted after some time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Action, ActionEvent, ActionName
from innkeeper.domain.orders import OrderStatus
from innkeeper.domain.usage import ServerPeriod
from innkeeper.store.queries.compute import orders, server_actions, usage
from innkeeper.store.queries.compute.orders import OrderRecord
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers.servers import fault_message

record = server_actions.add
"""Records an action that is complete at once and needs no agent."""
_RESULTS = {OrderStatus.DONE: ActionEvent.SUCCESS, OrderStatus.FAILED: ActionEvent.ERROR}


def actions_of(
    tx: Tx,
    server_uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Action]:
    """Return a server's actions after the request ``marker``, newest first, without events.

    Raises :class:`Invalid` for an unknown marker.
    """
    found = _all(tx, server_uuid)
    if marker is not None:
        requests = [each.request_id for each in found]
        if marker not in requests:
            raise Invalid(f"Marker {marker} could not be found.")
        found = found[requests.index(marker) + 1 :]
    found = [
        each
        for each in found
        if (since is None or each.updated_at >= since)
        and (until is None or each.updated_at <= until)
    ]
    return found if limit is None else found[:limit]


def action(tx: Tx, server_uuid: str, request_id: str) -> Action:
    """Return the action of one request on a server, with its events. Raises :class:`NotFound`."""
    for each in _all(tx, server_uuid):
        if each.request_id == request_id:
            found = orders.of_requests(tx, each.server_uuid, [request_id])
            return replace(each, events=tuple(_event(order) for order in found))
    raise NotFound(f"Action for request_id {request_id} on server {server_uuid} not found")


def _all(tx: Tx, server_uuid: str) -> list[Action]:
    found = [] if (creation := _creation(tx, server_uuid)) is None else [creation]
    found += server_actions.of_server(tx, server_uuid)
    return found[::-1]


def _creation(tx: Tx, server_uuid: str) -> Action | None:
    row = server_actions.creation(tx, server_uuid)
    if row is None or row[0] is None:
        return None
    request_id, project_id, user_id, fault, created_at, launched_at = row
    has_failed = launched_at is None and fault is not None
    return Action(
        ServerId(server_uuid),
        ActionName.CREATE,
        request_id,
        project_id,
        user_id,
        fault["message"] if has_failed else None,
        created_at,
        launched_at or created_at,
        counted=fault_message(fault, is_counted=True) if has_failed else None,
    )


def _event(order: OrderRecord) -> ActionEvent:
    return ActionEvent(
        name=order.kind,
        host=order.host,
        provider_uuid=order.provider_uuid,
        started_at=order.created_at,
        finished_at=None if order.status == OrderStatus.WAITING else order.updated_at,
        result=_RESULTS.get(order.status),
        message=order.message,
    )


def server_periods(
    tx: Tx,
    start: datetime,
    stop: datetime,
    *,
    project_id: str | None,
    marker: str | None,
    limit: int | None,
) -> list[ServerPeriod]:
    """Return the servers that ran between two times, after the server with the uuid ``marker``.

    A ``project_id`` of ``None`` means all projects. A ``limit`` of ``None`` means no limit.
    """
    if start > stop:
        raise Invalid("Invalid start time. The start time cannot occur after the end time.")
    after_row = 0
    if marker is not None:
        found = usage.row_of(tx, marker)
        if found is None or project_id not in (None, found[1]):
            raise Invalid(f"marker [{marker}] not found")
        after_row = found[0]
    return usage.in_window(tx, start, stop, project_id=project_id, after_row=after_row, limit=limit)
