"""Administrators use these handlers to manage zone parents, which are zones that may use this zone.

Always true: the password of a zone parent is shown only in the answer that creates the password.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.zone_tree import ZoneParent
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.zones.site_parts import box_of
from innkeeper.systems.zones import parents

PATH = "/v2.1/zones/parents"
LIMITS = {"instances": "servers_max", "cores": "vcpus_max", "ram": "memory_mb_max"}
"""The field with each limit, by the Compute API's name of the quota."""


async def index(call: Call) -> Answer:
    """List the zone parents of this zone."""
    box_of(call)
    found = await call.read(parents.listing)
    return Answer(200, {"zone_parents": [_shown(each) for each in found]})


async def show(call: Call) -> Answer:
    """Show a zone parent, without its password."""
    box_of(call)
    uuid = call.params["parent_id"]
    return Answer(200, {"zone_parent": _shown(await call.read(lambda tx: parents.get(tx, uuid)))})


async def create(call: Call) -> Answer:
    """Add a zone parent, which may use this zone. Only this answer shows its password."""
    box = box_of(call)
    body = call.body["zone_parent"]
    made, secret = await call.write(
        lambda tx: parents.create(
            tx,
            body["name"],
            tuple(body.get("roles", parents.DEFAULT_ROLES)),
            _limits(body),
            box=box,
            ids=call.site.ids,
            now=call.now,
        )
    )
    return Answer(201, {"zone_parent": {**_shown(made), "password": secret}})


async def update(call: Call) -> Answer:
    """Change a zone parent. With ``new_password``, replace its password."""
    box = box_of(call)
    body, uuid = call.body["zone_parent"], call.params["parent_id"]
    values: dict[str, Any] = dict(_limits(body))
    if "roles" in body:
        values["roles"] = list(body["roles"])
    if "enabled" in body:
        values["is_enabled"] = body["enabled"]
    shown: dict[str, Any] = {}

    def write(tx: Any) -> tuple[ZoneParent, str | None]:
        changed = parents.change(tx, uuid, values, call.now)
        if not body.get("new_password", False):
            return changed, None
        return parents.renew_secret(tx, uuid, box=box, ids=call.site.ids, now=call.now)

    changed, secret = await call.write(write)
    call.site.authenticator.forget()
    shown = _shown(changed)
    return Answer(200, {"zone_parent": shown if secret is None else {**shown, "password": secret}})


async def delete(call: Call) -> Answer:
    """Remove a zone parent. It can no longer use this zone, but its servers stay."""
    box_of(call)
    uuid = call.params["parent_id"]
    await call.write(lambda tx: parents.delete(tx, uuid))
    call.site.authenticator.forget()
    return Answer(204)


def _limits(body: dict[str, Any]) -> dict[str, int]:
    return {column: body[key] for key, column in LIMITS.items() if key in body}


def _shown(parent: ZoneParent) -> dict[str, Any]:
    return {
        "id": parent.uuid,
        "name": parent.name,
        "roles": list(parent.roles),
        "instances": parent.servers_max,
        "cores": parent.vcpus_max,
        "ram": parent.memory_mb_max,
        "enabled": parent.is_enabled,
        "created_at": micros(parent.created_at),
        "updated_at": micros(parent.updated_at),
    }
