"""These handlers attach volumes to a server, and list, change and detach them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.volumes import Attachment
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.compute.servers.acting import in_words, initiator
from innkeeper.entrypoints.api.paging import DIGITS_MAX, limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.systems.compute.servers import attaching
from innkeeper.systems.compute.servers.attaching import WantedVolume
from innkeeper.systems.volumes import attachments

ATTACHED = "os-extended-volumes:volumes_attached"


def _shown(each: Attachment) -> dict[str, Any]:
    return {
        "volumeId": each.volume_uuid,
        "serverId": each.server_uuid,
        "device": each.device,
        "tag": each.tag,
        "delete_on_termination": each.deletes_volume,
        "attachment_id": each.uuid,
        "bdm_uuid": each.uuid,
    }


async def put_into(call: Call, shown: Sequence[dict[str, Any]]) -> None:
    """Add the attached volumes to servers that are shown with details."""
    wanted = {each["id"]: each for each in shown if each.get(ATTACHED) == []}
    if not wanted:
        return
    for each in await call.read(lambda tx: attachments.of_servers(tx, list(wanted))):
        if each.server_uuid is not None:
            item = {"id": each.volume_uuid, "delete_on_termination": each.deletes_volume}
            wanted[each.server_uuid][ATTACHED].append(item)


async def index(call: Call) -> Answer:
    """List a server's volumes."""
    server = await found(call)
    mine = await call.read(lambda tx: attachments.of_servers(tx, [server.uuid]))
    start = int((call.last("offset") or "0")[:DIGITS_MAX])
    page = mine[start:][: limit_of(call)]
    return Answer(200, {"volumeAttachments": [_shown(each) for each in page]})


async def show(call: Call) -> Answer:
    """Show how a volume is attached to a server."""
    server, volume_id = await found(call), call.params["volume_id"]
    one = await call.read(lambda tx: attachments.of_server(tx, server.uuid, volume_id))
    if one is None:
        raise NotFound(f"Instance {server.uuid} is not attached to volume {volume_id}")
    return Answer(200, {"volumeAttachment": _shown(one)})


async def create(call: Call) -> Answer:
    """Attach a volume to a server."""
    server, body = await found(call), call.body["volumeAttachment"]
    wanted = WantedVolume(
        call.site.ids.uuid(),
        body["volumeId"],
        body.get("device") or None,
        body.get("tag"),
        deletes_volume=body.get("delete_on_termination") in TRUE_WORDS,
    )
    who, crosses = initiator(call, server), call.site.settings.volumes.cross_az_attach

    def work(tx: Tx) -> Attachment:
        return attaching.attach(tx, server.uuid, who, wanted, crosses_zones=crosses, now=call.now)

    try:
        made = await call.write(work)
    except Conflict as error:
        raise in_words(error, "attach_volume") from error
    shown = {"id": made.volume_uuid, **_shown(made)}
    for key in ("attachment_id", "bdm_uuid"):
        del shown[key]
    return Answer(200, {"volumeAttachment": shown})


async def update(call: Call) -> Answer:
    """Set whether a volume is deleted with its server. Volumes cannot be swapped."""
    server, body = await found(call), call.body["volumeAttachment"]
    volume_id = call.params["volume_id"]
    if body["volumeId"] != volume_id:
        raise Invalid("A volume cannot be swapped. Attach the other volume, and detach this one.")
    if "delete_on_termination" not in body:
        raise Invalid("Invalid input for field/attribute volumeAttachment: nothing to update.")
    deletes = body["delete_on_termination"] in TRUE_WORDS
    who = initiator(call, server)
    try:
        await call.write(
            lambda tx: attaching.update(
                tx, server.uuid, who, volume_id, deletes=deletes, now=call.now
            )
        )
    except Conflict as error:
        raise in_words(error, "update_volume") from error
    return Answer(202)


async def delete(call: Call) -> Answer:
    """Detach a volume from a server."""
    server, volume_id = await found(call), call.params["volume_id"]
    who = initiator(call, server)
    try:
        await call.write(lambda tx: attaching.detach(tx, server.uuid, who, volume_id, now=call.now))
    except Conflict as error:
        raise in_words(error, "detach_volume") from error
    return Answer(202)
