"""What was done to servers: actions, and the steps of each on the hosts.

Always true: that a server was made is told by the server itself; the steps are the work orders
of the request. May be false: that an old action still has its steps, since orders are forgotten
some time after they ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import OrderStatus
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Action, ActionEvent, ActionName, Asker
from innkeeper.store.queries.compute import orders, server_actions
from innkeeper.store.queries.compute.orders import OrderRecord
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers.servers import fault_message

_RESULTS = {OrderStatus.DONE: ActionEvent.SUCCESS, OrderStatus.FAILED: ActionEvent.ERROR}


def record(tx: Tx, server_uuid: ServerId, action: str, asker: Asker, *, now: datetime) -> None:
    """Write down something that is done at once and takes no agent."""
    server_actions.add(tx, server_uuid, action, asker, now)


def actions_of(
    tx: Tx,
    server_uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Action]:
    """What was done to a server, newest first, behind the request ``marker``.

    Raises :class:`Invalid` for a marker that is none. Steps are not told.
    """
    found = _all(tx, server_uuid)
    if marker is not None:
        place = [i for i, each in enumerate(found) if each.request_id == marker]
        if not place:
            raise Invalid(f"Marker {marker} could not be found.")
        found = found[place[0] + 1 :]
    found = [
        each
        for each in found
        if (since is None or each.updated_at >= since)
        and (until is None or each.updated_at <= until)
    ]
    return found if limit is None else found[:limit]


def action(tx: Tx, server_uuid: str, request_id: str) -> Action:
    """What one request did to a server, with its steps; else :class:`NotFound`."""
    for each in _all(tx, server_uuid):
        if each.request_id == request_id:
            told = orders.of_requests(tx, each.server_uuid, [request_id])
            return replace(each, events=tuple(_events(told)))
    raise NotFound(f"Action for request_id {request_id} on server {server_uuid} not found")


def _all(tx: Tx, server_uuid: str) -> list[Action]:
    found = [] if (made := _creation(tx, server_uuid)) is None else [made]
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


def _events(told: Sequence[OrderRecord]) -> list[ActionEvent]:
    return [
        ActionEvent(
            name=each.kind,
            host=each.host,
            provider_uuid=each.provider_uuid,
            started_at=each.created_at,
            finished_at=None if each.status == OrderStatus.WAITING else each.updated_at,
            result=_RESULTS.get(each.status),
            message=each.message,
        )
        for each in told
    ]
