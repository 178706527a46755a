"""Administrators use these handlers to add, list, change and remove child zones.

Always true: no answer has the password of a child zone.
"""

from __future__ import annotations

from typing import Any

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import checked_url
from innkeeper.domain.errors import Conflict
from innkeeper.domain.zone_tree import ChildZone
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.zones.site_parts import box_of, tree_of
from innkeeper.systems.zones import children
from innkeeper.systems.zones.children import Contact, NewChild, Reached

PATH = "/v2.1/zones"
FIELDS = ("name", "username", "weight_offset", "weight_scale")
CONTACTED = frozenset({"api_url", "username", "password", "replaced"})
"""The address and login of a child zone. Before one of these fields changes, the child zone is
contacted."""


async def index(call: Call) -> Answer:
    """List child zones."""
    box_of(call)
    found = await call.read(children.every)
    return Answer(200, {"zones": [_shown(each) for each in found]})


async def detail(call: Call) -> Answer:
    """List child zones, with the results of the last polls and the number of servers in each."""
    box_of(call)
    found, counts = await call.read(lambda tx: (children.every(tx), children.server_counts(tx)))
    return Answer(200, {"zones": [_whole(each, counts.get(each.id, 0)) for each in found]})


async def show(call: Call) -> Answer:
    """Show a child zone."""
    box_of(call)
    uuid = call.params["zone_id"]
    child, counts = await call.read(lambda tx: (children.get(tx, uuid), children.server_counts(tx)))
    return Answer(200, {"zone": _whole(child, counts.get(child.id, 0))})


async def create(call: Call) -> Answer:
    """Contact a child zone, and add it if it answers."""
    box, tree = box_of(call), tree_of(call)
    body = call.body["zone"]
    offset, scale = body.get("weight_offset", 0.0), body.get("weight_scale", 1.0)
    children.check_weights(offset, scale)
    wanted = NewChild(
        name=body["name"],
        api_url=checked_url(body["api_url"]),
        username=body["username"],
        password=body["password"],
        weight_offset=float(offset),
        weight_scale=float(scale),
        is_enabled=body.get("enabled", True),
    )
    reached = await _reached(call, wanted.api_url, wanted.username, wanted.password)
    made = await call.write(
        lambda tx: children.create(tx, wanted, reached, box=box, ids=call.site.ids, now=call.now)
    )
    tree.children.forget()
    return Answer(200, {"zone": _whole(made, 0)})


async def update(call: Call) -> Answer:
    """Change a child zone. If the address or login changes, the service first contacts the zone."""
    box, tree = box_of(call), tree_of(call)
    body, uuid = call.body["zone"], call.params["zone_id"]
    values: dict[str, Any] = {name: body[name] for name in FIELDS if name in body}
    if "api_url" in body:
        values["api_url"] = checked_url(body["api_url"])
    for key, column in {"enabled": "is_enabled", "draining": "is_draining"}.items():
        if key in body:
            values[column] = body[key]
    told: str | None = body.get("password")
    contact = None
    if not CONTACTED.isdisjoint(body):
        # If the body has a new password, do not read the stored password, which may be unreadable.
        child, password = await call.read(lambda tx: _child_and_password(tx, uuid, box, told))
        reached = await _reached(
            call,
            values.get("api_url", child.api_url),
            values.get("username", child.username),
            password,
        )
        contact = Contact(child, reached, may_be_another=body.get("replaced", False))
    changed, counts = await call.write(
        lambda tx: (
            children.change(tx, uuid, values, contact, password=told, box=box, now=call.now),
            children.server_counts(tx),
        )
    )
    tree.children.forget()
    return Answer(200, {"zone": _whole(changed, counts.get(changed.id, 0))})


async def delete(call: Call) -> Answer:
    """Remove a child zone, if no project of this zone has servers in the child zone."""
    tree = tree_of(call)
    uuid = call.params["zone_id"]
    await call.write(lambda tx: children.delete(tx, uuid))
    tree.children.forget()
    return Answer(204)


def _child_and_password(tx: Any, uuid: str, box: Any, told: str | None) -> tuple[ChildZone, str]:
    child = children.get(tx, uuid)
    return child, children.password_of(tx, child, box) if told is None else told


async def _reached(call: Call, api_url: str, username: str, password: str) -> Reached:
    try:
        return await tree_of(call).contact(api_url, username, password)
    except ZoneSilent as error:
        raise Conflict(f"The zone at {api_url} cannot be used: {error}.") from error


def _shown(child: ChildZone) -> dict[str, Any]:
    """Return the JSON value of a child zone in a list without details."""
    return {
        "id": child.uuid,
        "name": child.name,
        "api_url": child.api_url,
        "is_active": child.state.is_active,
        "enabled": child.is_enabled,
        "draining": child.is_draining,
        "weight_offset": child.weight_offset,
        "weight_scale": child.weight_scale,
        "capabilities": dict(child.state.capabilities),
    }


def _whole(child: ChildZone, servers: int) -> dict[str, Any]:
    state = child.state
    return {
        **_shown(child),
        "username": child.username,
        "last_seen_at": micros(state.last_seen_at),
        "last_error": state.last_error,
        "failed_at": micros(state.failed_at),
        "failures": state.failures,
        "latency_ms": None if state.latency_ms is None else round(state.latency_ms, 2),
        "servers": servers,
        "created_at": micros(child.created_at),
        "updated_at": micros(child.updated_at),
    }
