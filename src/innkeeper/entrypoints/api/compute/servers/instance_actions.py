"""These handlers show instance actions, which are a server's history, with their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import NotFound
from innkeeper.domain.moves import Action, ActionEvent
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.compute.servers.access import found, found_even_deleted
from innkeeper.entrypoints.api.compute.servers.view import host_id
from innkeeper.entrypoints.api.compute.timestamps import changes, micros
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.servers import history

EVENTS_RULE = "os_compute_api:os-instance-actions:events"
DETAILS_RULE = "os_compute_api:os-instance-actions:events:details"


@dataclass(frozen=True, slots=True)
class InstanceActionOptions:
    """Options that the microversion sets for requests about instance actions."""

    shows_deleted: bool = True
    """Whether the actions on deleted servers are shown."""


async def index(call: Call) -> Answer:
    """List the actions on a server, newest first."""
    server = await _server(call)
    filters = {name: values[-1] for name, values in call.query.items()}
    since, until = changes(filters)
    limit, marker = limit_of(call), call.last("marker")
    if limit == 0:
        return Answer(200, {"instanceActions": []})
    found_actions = await call.read(
        lambda tx: history.actions_of(
            tx, server.uuid, limit=limit + 1, marker=marker, since=since, until=until
        )
    )
    page = found_actions[:limit]
    body: dict[str, Any] = {"instanceActions": [_shown(call, each) for each in page]}
    if len(found_actions) > limit:
        path = f"servers/{server.uuid}/os-instance-actions"
        body["links"] = next_page(call, path, page[-1].request_id)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show an action on a server, with its events."""
    server = await _server(call)
    request_id = call.params["request_id"]
    try:
        action = await call.read(lambda tx: history.action(tx, server.uuid, request_id))
    except NotFound as error:
        raise NotFound(f"Action {request_id} not found") from error
    shown = _shown(call, action)
    shown["events"] = [_event(call, server, each) for each in action.events]
    return Answer(200, {"instanceAction": shown})


async def _server(call: Call) -> Server:
    shows_deleted = call.options.of(InstanceActionOptions).shows_deleted
    return await (found_even_deleted(call) if shows_deleted else found(call))


def _shown(call: Call, action: Action) -> dict[str, Any]:
    return {
        "action": action.action,
        "instance_uuid": action.server_uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": micros(action.created_at),
        # Only administrators may see how many hosts are dedicated.
        "message": (call.context.is_admin and action.counted) or action.message,
        "updated_at": micros(action.updated_at),
    }


def _event(call: Call, server: Server, event: ActionEvent) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": event.name,
        "start_time": micros(event.started_at),
        "finish_time": micros(event.finished_at),
        "result": event.result,
        "hostId": host_id(server.project_id, event.provider_uuid),
    }
    if call.allows(EVENTS_RULE, project_id=server.project_id):
        # Tracebacks are logged, but not stored.
        shown["traceback"] = None
        shown["host"] = event.host
    if call.allows(DETAILS_RULE, project_id=server.project_id):
        shown["details"] = event.message
    return shown
