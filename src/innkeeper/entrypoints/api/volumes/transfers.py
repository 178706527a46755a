"""These handlers transfer volumes between projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.domain.ids import secret_bytes
from innkeeper.domain.volumes import VolumeTransfer
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.request_checks import project_and_user
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.entrypoints.api.volumes.calling import links, moment
from innkeeper.systems.volumes import transfers, volumes

KEY_CHARS = 32
SALT_CHARS = 16


def _brief(call: Call, each: VolumeTransfer) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "volume_id": each.volume_uuid,
        "name": each.name,
        "links": links(call, f"volume-transfers/{each.uuid}"),
    }


def _full(call: Call, each: VolumeTransfer) -> dict[str, Any]:
    return {
        **_brief(call, each),
        "created_at": moment(each.created_at),
        "source_project_id": each.project_id,
        "destination_project_id": None,
        "accepted": False,
        "no_snapshots": False,
    }


async def index(call: Call) -> Answer:
    """List the transfers that a project offers."""
    return await _listed(call, _brief)


async def detail(call: Call) -> Answer:
    """List the transfers that a project offers, with details."""
    return await _listed(call, _full)


async def _listed(call: Call, show_one: Callable[[Call, VolumeTransfer], dict[str, Any]]) -> Answer:
    project_id: str | None = call.context.project_id or ""
    if call.context.is_admin and call.last("all_tenants", "0") in (*TRUE_WORDS, "1"):
        project_id = None
    limit = limit_of(call)

    def read(tx: Tx) -> list[VolumeTransfer]:
        after = calling.marker_row(
            call, lambda uuid: transfers.get(tx, uuid, calling.owner(call)).id
        )
        # Read one transfer more than is shown, to know whether there is a next page.
        return transfers.page(tx, project_id, after, limit + 1)

    found = await call.read(read)
    shown = [show_one(call, each) for each in found[:limit]]
    links = calling.next_link(call, "transfers", found, limit)
    return Answer(200, {"transfers": shown, **links})


async def show(call: Call) -> Answer:
    """Show a transfer that the caller's project offers."""
    uuid = call.params["transfer_id"]
    found = await call.read(lambda tx: transfers.get(tx, uuid, calling.owner(call)))
    return Answer(200, {"transfer": _full(call, found)})


async def create(call: Call) -> Answer:
    """Offer a volume. Any project that knows the key in this answer can accept the volume."""
    body = call.body["transfer"]
    project_and_user(call)
    ids = call.site.ids
    new_id, key = ids.uuid(), secret_bytes(ids).hex()[:KEY_CHARS]
    salt = secret_bytes(ids).hex()[:SALT_CHARS]

    def work(tx: Tx) -> VolumeTransfer:
        volume = volumes.get(tx, body["volume_id"], calling.owner(call))
        return transfers.create(tx, volume, new_id, body.get("name"), key, salt, call.now)

    made = await call.write(work)
    return Answer(202, {"transfer": {**_full(call, made), "auth_key": key}})


async def accept(call: Call) -> Answer:
    """Take over a volume with the key of its transfer."""
    project_id, user_id = project_and_user(call)
    settings = call.site.settings.volumes
    uuid, key = call.params["transfer_id"], call.body["accept"]["auth_key"]
    found, _ = await call.write(
        lambda tx: transfers.accept(tx, uuid, key, project_id, user_id, settings, call.now)
    )
    return Answer(202, {"transfer": _brief(call, found)})


async def delete(call: Call) -> Answer:
    """Withdraw a transfer. The volume is available again."""
    uuid = call.params["transfer_id"]
    await call.write(lambda tx: transfers.delete(tx, uuid, calling.owner(call), call.now))
    return Answer(202)
