"""These handlers manage volume types, their extra specs, and the projects that may use them."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.volumes import VolumeType
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.request_checks import demand_key, unknown_action
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.systems.pods import routings
from innkeeper.systems.volumes import types

PUBLIC = "os-volume-type-access:is_public"
SPECS_RULE = "volume_extension:access_types_extra_specs"
DRIVER_SCOPES = ("volume_backend_name", "resource_class", "trait:", "capabilities:")
"""Extra specs that only administrators see, because they reveal how pools are built."""


def _shown(call: Call, kind: VolumeType) -> dict[str, Any]:
    specs = {
        key: value
        for key, value in kind.extra_specs.items()
        if call.context.is_admin or not key.startswith(DRIVER_SCOPES)
    }
    shown = {
        "id": kind.uuid,
        "name": kind.name,
        "description": kind.description,
        "is_public": kind.is_public,
        "extra_specs": specs,
        PUBLIC: kind.is_public,
    }
    if call.context.is_admin:
        shown["qos_specs_id"] = None
    return shown


def _one(tx: Tx, call: Call) -> VolumeType:
    uuid = call.params["type_id"]
    project_id, is_admin = call.context.project_id, call.context.is_admin
    if uuid == "default":
        name = call.site.settings.volumes.default_volume_type
        return types.named(tx, name, project_id, is_admin=True)
    return types.get(tx, uuid, project_id, is_admin=is_admin)


async def index(call: Call) -> Answer:
    """List the volume types that the caller may use."""
    wanted = (call.last("is_public") or "").lower()
    if wanted not in ("", "none", "true", "false", "1", "0"):
        raise Invalid(f"Invalid is_public filter [{wanted}]")
    name, limit, marker = call.last("name"), limit_of(call), call.last("marker")

    def read(tx: Tx) -> list[VolumeType]:
        context = call.context
        return types.listing(tx, context.project_id, is_admin=context.is_admin)

    found = await call.read(read)
    if call.context.is_admin and wanted in ("true", "1", ""):
        found = [each for each in found if each.is_public] if wanted else found
    elif wanted in ("false", "0"):
        found = [each for each in found if not each.is_public]
    if name is not None:
        found = [each for each in found if each.name == name]
    specs = calling.mapping(call, "extra_specs").items()
    if specs:
        # Filter only by the extra specs that the caller may see.
        found = [each for each in found if specs <= _shown(call, each)["extra_specs"].items()]
    if marker is not None:
        places = [place for place, each in enumerate(found) if each.uuid == marker]
        if not places:
            raise Invalid(f"marker [{marker}] not found")
        found = found[places[0] + 1 :]
    return Answer(200, {"volume_types": [_shown(call, each) for each in found[:limit]]})


async def show(call: Call) -> Answer:
    """Show a volume type. The id ``default`` stands for the default type."""
    kind = await call.read(lambda tx: _one(tx, call))
    return Answer(200, {"volume_type": _shown(call, kind)})


async def create(call: Call) -> Answer:
    """Create a volume type."""
    body = call.body["volume_type"]
    new_id = call.site.ids.uuid()
    kind = await call.write(
        lambda tx: types.create(
            tx,
            new_id,
            body["name"],
            body.get("description"),
            body.get("extra_specs") or {},
            is_public=calling.flag(PUBLIC, body.get(PUBLIC, True)),
            now=call.now,
        )
    )
    return Answer(200, {"volume_type": _shown(call, kind)})


async def update(call: Call) -> Answer:
    """Update a volume type's name or description, or make it public or private."""
    body = call.body["volume_type"]
    values: dict[str, Any] = {
        name: body[name] for name in ("name", "description") if body.get(name) is not None
    }
    # The stock client sends the second of these names.
    for name in ("is_public", PUBLIC):
        if name in body:
            values["is_public"] = calling.flag(name, body[name])
    if not values:
        raise Invalid("Specify volume type name, description, is_public or a combination thereof.")
    default = call.site.settings.volumes.default_volume_type
    uuid = call.params["type_id"]
    kind = await call.write(lambda tx: types.change(tx, uuid, values, default, call.now))
    return Answer(200, {"volume_type": _shown(call, kind)})


async def delete(call: Call) -> Answer:
    """Delete a volume type that no volume has."""
    default = call.site.settings.volumes.default_volume_type

    def work(tx: Tx) -> None:
        kind = _one(tx, call)
        if routings.has_type(tx, kind.uuid):
            raise Invalid(types.IN_USE)
        types.delete(tx, kind.uuid, default)

    await call.write(work)
    return Answer(202)


async def specs(call: Call) -> Answer:
    """Show a volume type's extra specs."""
    kind = await call.read(lambda tx: _one(tx, call))
    return Answer(200, {"extra_specs": _shown(call, kind)["extra_specs"]})


async def set_specs(call: Call) -> Answer:
    """Add or replace extra specs of a volume type."""
    items = call.body["extra_specs"]
    await call.write(lambda tx: types.set_specs(tx, call.params["type_id"], items, call.now))
    return Answer(200, {"extra_specs": dict(items)})


async def spec(call: Call) -> Answer:
    """Show one extra spec of a volume type."""
    kind, key = await call.read(lambda tx: _one(tx, call)), call.params["key"]
    shown = _shown(call, kind)["extra_specs"]
    if key not in shown:
        raise types.unknown_spec(kind.uuid, key)
    return Answer(200, {key: shown[key]})


async def set_spec(call: Call) -> Answer:
    """Set one extra spec of a volume type."""
    items = call.body
    demand_key(call, items)
    await call.write(lambda tx: types.set_specs(tx, call.params["type_id"], items, call.now))
    return Answer(200, dict(items))


async def unset_spec(call: Call) -> Answer:
    """Remove one extra spec of a volume type."""
    uuid, key = call.params["type_id"], call.params["key"]
    await call.write(lambda tx: types.unset_spec(tx, uuid, key, call.now))
    return Answer(202)


async def access(call: Call) -> Answer:
    """List the projects that may use a private volume type."""
    kind, projects = await call.read(lambda tx: types.access(tx, call.params["type_id"]))
    found = [{"volume_type_id": kind.uuid, "project_id": each} for each in projects]
    return Answer(200, {"volume_type_access": found})


async def act(call: Call) -> Answer:
    """Grant or revoke a project's access to a private volume type."""
    ((name, arguments),) = call.body.items()
    work = {"addProjectAccess": types.share, "removeProjectAccess": types.unshare}.get(name)
    if work is None:
        raise unknown_action(name)
    await call.write(lambda tx: work(tx, call.params["type_id"], arguments["project"]))
    return Answer(202)


async def encryption(call: Call) -> Answer:
    """Show a volume type's encryption (always empty, because volumes are not encrypted)."""
    await call.read(lambda tx: _one(tx, call))
    return Answer(200, {})
