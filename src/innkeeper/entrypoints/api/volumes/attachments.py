"""These handlers manage attachments for clients that connect volumes themselves, such as Nova.

Always true: an attachment that the Compute API made can be listed and shown here, but not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.volumes import Attachment, AttachMode, AttachOrigin, AttachStatus, Volume
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.request_checks import unknown_action
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.entrypoints.api.volumes.calling import moment
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.attachments import NewAttachment

FILTERS = {
    "volume_id": "volume_uuid",
    "instance_id": "server_uuid",
    "status": "status",
    "id": "uuid",
}


@dataclass(frozen=True, slots=True)
class ModeOptions:
    """Options that the microversion sets for attachments.

    If ``takes_mode`` is true, a new attachment may have a mode.
    """

    takes_mode: bool = True


def _brief(each: Attachment) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "status": each.status,
        "instance": each.server_uuid,
        "volume_id": each.volume_uuid,
    }


def _full(each: Attachment) -> dict[str, Any]:
    return {
        **_brief(each),
        "attached_at": moment(each.attached_at),
        "detached_at": None,
        "attach_mode": each.mode,
        "connection_info": _connection(each),
    }


def _connection(each: Attachment) -> dict[str, Any]:
    """Return the information that a client needs to connect to a volume.

    The driver of the pool's host serves the volume's data.
    """
    if each.connector is None:
        return {}
    return {
        "driver_volume_type": "innkeeper",
        "volume_id": each.volume_uuid,
        "attachment_id": each.uuid,
        "access_mode": each.mode,
        "encrypted": False,
        "cacheable": False,
        "enforce_multipath": False,
        "qos_specs": None,
    }


async def index(call: Call) -> Answer:
    """List attachments with their ids and states."""
    return await _listed(call, is_full=False)


async def detail(call: Call) -> Answer:
    """List attachments with details."""
    return await _listed(call, is_full=True)


async def _listed(call: Call, *, is_full: bool) -> Answer:
    project_id: str | None = call.context.project_id or ""
    if call.context.is_admin and call.last("all_tenants", "0") in (*TRUE_WORDS, "1"):
        project_id = call.last("project_id")
    exact = {
        column: (call.query[name][-1],) for name, column in FILTERS.items() if name in call.query
    }
    limit = limit_of(call)

    def read(tx: Tx) -> list[Attachment]:
        after = calling.marker_row(
            call, lambda uuid: attachments.get(tx, uuid, calling.owner(call))[0].id
        )
        return attachments.page(tx, project_id, exact, after, limit + 1)

    found = await call.read(read)
    shown = [_full(each) if is_full else _brief(each) for each in found[:limit]]
    links = calling.next_link(call, "attachments", found, limit)
    return Answer(200, {"attachments": shown, **links})


async def show(call: Call) -> Answer:
    """Show an attachment."""
    found, _ = await call.read(lambda tx: _one(tx, call))
    return Answer(200, {"attachment": _full(found)})


def _one(tx: Tx, call: Call) -> tuple[Attachment, Volume]:
    return attachments.get(tx, call.params["attachment_id"], calling.owner(call))


async def create(call: Call) -> Answer:
    """Reserve a volume for a server. If the body has a connector, connect the volume at once."""
    body = call.body["attachment"]
    connector = body.get("connector") or None
    mode = body.get("mode") or AttachMode.READ_WRITE
    new = NewAttachment(
        call.site.ids.uuid(),
        body["volume_uuid"],
        calling.server_id(body.get("instance_uuid")),
        origin=AttachOrigin.CLIENT,
        status=AttachStatus.RESERVED if connector is None else AttachStatus.ATTACHING,
        mode=mode,
        host=_host(connector),
        device=_device(connector),
        connector=connector,
    )

    def work(tx: Tx) -> Attachment:
        volume = volumes.get(tx, body["volume_uuid"], calling.owner(call))
        if mode == AttachMode.READ_WRITE and volume.is_read_only and body.get("mode"):
            raise Invalid("Invalid volume: the volume is read-only. Use the mode ro.")
        return attachments.add(tx, volume, new, call.now)

    return Answer(200, {"attachment": _full(await call.write(work))})


def _host(connector: dict[str, Any] | None) -> str | None:
    return _short(connector, "host")


def _device(connector: dict[str, Any] | None) -> str | None:
    return _short(connector, "mountpoint")


def _short(connector: dict[str, Any] | None, name: str) -> str | None:
    value = None if connector is None else connector.get(name)
    return str(value)[:255] if value else None


async def update(call: Call) -> Answer:
    """Set the connector of a reserved attachment."""
    connector = call.body["attachment"]["connector"]

    def work(tx: Tx) -> Attachment:
        found, _ = _one(tx, call)
        attachments.demand_of_client(found)
        if found.status not in (AttachStatus.RESERVED, AttachStatus.ATTACHING):
            raise Conflict(f"Attachment {found.uuid} is already {found.status}.")
        values = {
            "status": AttachStatus.ATTACHING,
            "connector": connector,
            "host": _host(connector),
            "device": _device(connector),
        }
        return attachments.change(tx, found, values, call.now)

    return Answer(200, {"attachment": _full(await call.write(work))})


async def act(call: Call) -> Answer:
    """Complete an attachment after the client has connected the volume."""
    if set(call.body) != {"os-complete"}:
        raise unknown_action(", ".join(call.body)[:100])

    def work(tx: Tx) -> None:
        found, _ = _one(tx, call)
        attachments.demand_of_client(found)
        if found.status == AttachStatus.ATTACHED:
            return
        if found.status != AttachStatus.ATTACHING:
            raise Invalid(f"Attachment {found.uuid} must be attaching, but is {found.status}.")
        attachments.change(tx, found, {"status": AttachStatus.ATTACHED}, call.now)

    await call.write(work)
    return Answer(204)


async def delete(call: Call) -> Answer:
    """Delete an attachment that a client created, and list the volume's other attachments."""

    def work(tx: Tx) -> list[Attachment]:
        found, volume = _one(tx, call)
        attachments.demand_of_client(found)
        attachments.remove(tx, [found], call.now)
        return attachments.of_volumes(tx, [volume.uuid])

    left = await call.write(work)
    return Answer(200, {"attachments": [_brief(each) for each in left]})
