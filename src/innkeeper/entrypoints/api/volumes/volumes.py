"""These handlers create, list, show, update and delete volumes, and change their metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from innkeeper.domain.door import MARK
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.volumes import Volume, VolumeRequest, VolumeSelection
from innkeeper.engine.retry import VOLUMES
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.request_checks import demand_key, project_and_user
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes import calling, listing, view
from innkeeper.entrypoints.api.volumes.schemas import HINTS_KEY
from innkeeper.systems.compute.boot import making_volumes
from innkeeper.systems.volumes import pages, volumes
from innkeeper.systems.volumes.creating import NewVolume

REFUSED = {
    "snapshot_id": "snapshots",
    "backup_id": "backups",
    "source_replica": "replication",
    "consistencygroup_id": "groups",
    "group_id": "groups",
}
FORCE_DELETE = "volume:force_delete"
SUMMARY_MAX = 100_000
"""The maximum number of volumes in a summary."""
METADATA_MAX = 128
"""The maximum number of metadata items of a volume."""


@dataclass(frozen=True, slots=True)
class DeletionOptions:
    """Options that the microversion sets for deletions.

    If ``takes_force`` is true, a deletion reads the parameter ``force``.
    """

    takes_force: bool = True


def request(call: Call) -> VolumeRequest:
    """Convert a body to a request for a volume. Raises :class:`Invalid` for wrong values."""
    body = call.body["volume"]
    project_id, user_id = project_and_user(call)
    for key, noun in REFUSED.items():
        if body.get(key):
            raise Invalid(f"Volumes cannot be created from {noun}: {noun} are not supported.")
    if body.get("multiattach") is not None and calling.flag("multiattach", body["multiattach"]):
        raise Invalid(
            "multiattach parameter has been removed. The default behavior is to use multiattach "
            "enabled volume types. Contact your administrator to create a multiattach enabled "
            "volume type and use it to create multiattach volumes."
        )
    size = body.get("size")
    hints = call.body.get(HINTS_KEY) or body.get("scheduler_hints") or {}
    if hints.get("local_to_instance"):
        raise Invalid("The scheduler hint local_to_instance is not supported.")
    metadata = body.get("metadata") or {}
    check_metadata(metadata)
    return VolumeRequest(
        uuid=call.site.ids.uuid(),
        project_id=project_id,
        user_id=user_id,
        size_gb=None if size is None else calling.size("size", size),
        seed=call.site.ids.seed(),
        now=call.now,
        is_admin=call.context.is_admin,
        name=_text(body, "name", "display_name"),
        description=_text(body, "description", "display_description"),
        type_name=body.get("volume_type") or None,
        availability_zone=body.get("availability_zone") or None,
        image_id=_image_id(body.get("imageRef") or body.get("image_id")),
        source_uuid=body.get("source_volid") or None,
        metadata=metadata,
        same_as=_ids(hints, "same_host"),
        different_from=_ids(hints, "different_host"),
        request_id=call.context.request_id,
    )


def _text(body: Mapping[str, Any], *names: str) -> str | None:
    found = next((body[name] for name in names if body.get(name) is not None), None)
    return None if found is None else str(found).strip()


def _image_id(text: str | None) -> str | None:
    if not text:
        return None
    found = canonical_uuid(text.rpartition("/")[2])
    if found is None:
        raise Invalid(f"Invalid image identifier or unable to access requested image: {text}.")
    return found


def _ids(hints: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = hints.get(name) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def check_metadata(items: Mapping[str, str]) -> None:
    """Raise :class:`Invalid` for more items than a volume can have.

    The mark of a door is not counted, because the door adds this item to those of the user.
    """
    if len(items.keys() - {MARK}) > METADATA_MAX:
        raise Invalid(f"A volume can have at most {METADATA_MAX} metadata items.")


async def create(call: Call) -> Answer:
    """Create a volume. If no pool is valid for the volume, its status is ``error``."""
    wanted = request(call)
    if wanted.source_uuid is None and wanted.size_gb is None:
        raise Invalid("Invalid input for field/attribute volume. 'size' is a required property.")

    # The volumes of waiting requests are chosen, claimed and written together.
    new = NewVolume(wanted, call.site.settings.volumes)
    made = await call.decide_together(making_volumes.create_together, new, retry=VOLUMES)
    # The answer does not show the pool, and a new volume has no attachments.
    shown = view.full(call, made.volume, view.ShownWith({made.kind.id: made.kind}, {}))
    for key in (view.HOST, view.PROJECT, "os-vol-mig-status-attr:migstat"):
        shown.pop(key, None)
    return Answer(202, {"volume": shown})


async def explain(call: Call) -> Answer:
    """Explain which pools a volume could use, and why it could not use the others.

    Nothing is created.
    """
    wanted = request(call)
    found = await calling.decide(call, lambda tx, here: making_volumes.explain(tx, here, wanted))
    return Answer(200, {"explanation": _for_caller(call, found)})


async def explained(call: Call) -> Answer:
    """Show why a volume is in its pool, or why no pool was found for it."""

    def read(tx: Tx) -> tuple[Volume, Mapping[str, Any]]:
        volume = calling.one(tx, call)
        return volume, volumes.decision(tx, volume.uuid) or {}

    volume, found = await call.read(read)
    return Answer(200, {"explanation": {**_for_caller(call, found), "message": volume.fault}})


def _for_caller(call: Call, found: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(found)
    if not call.context.is_admin:
        for key in ("pool", "refused", "free_gb"):
            shown.pop(key, None)
    return shown


async def index(call: Call) -> Answer:
    """List volumes with their ids and names."""
    return await _listed(call, lambda volume, _: view.brief(call, volume))


async def detail(call: Call) -> Answer:
    """List volumes with details."""
    return await _listed(call, lambda volume, more: view.full(call, volume, more))


async def _listed(
    call: Call, show_one: Callable[[Volume, view.ShownWith], dict[str, Any]]
) -> Answer:
    with_count = calling.flag("with_count", call.last("with_count", "false"))

    def read(tx: Tx) -> tuple[VolumeSelection, list[Volume], view.ShownWith, int]:
        selected = listing.selection(tx, call)
        # Read one volume more than is shown, to know whether there is a next page.
        found = pages.page(tx, replace(selected, limit=selected.limit + 1))
        total = pages.count(tx, selected) if with_count else 0
        return selected, found, view.read(call, tx, found), total

    selected, found, more, total = await call.read(read)
    shown = [show_one(each, more) for each in found[: selected.limit]]
    links = calling.next_link(call, "volumes", found, selected.limit)
    count = {"count": total} if with_count else {}
    return Answer(200, {"volumes": shown, **links, **count})


async def summary(call: Call) -> Answer:
    """Show the number of volumes and the sum of their sizes."""

    def read(tx: Tx) -> list[Volume]:
        return pages.page(tx, replace(listing.selection(tx, call), limit=SUMMARY_MAX))

    found = await call.read(read)
    keys = sorted({key for each in found for key in each.metadata})
    metadata = {
        key: sorted({each.metadata[key] for each in found if key in each.metadata}) for key in keys
    }
    totals = {"total_count": len(found), "total_size": sum(each.size_gb for each in found)}
    return Answer(200, {"volume-summary": {**totals, "metadata": metadata}})


async def show(call: Call) -> Answer:
    """Show a volume."""

    def read(tx: Tx) -> tuple[Volume, view.ShownWith]:
        volume = calling.one(tx, call)
        return volume, view.read(call, tx, [volume])

    volume, more = await call.read(read)
    return Answer(200, {"volume": view.full(call, volume, more)})


async def update(call: Call) -> Answer:
    """Update a volume's name, description or metadata."""
    body = call.body["volume"]
    columns = {
        "name": "name",
        "display_name": "name",
        "description": "description",
        "display_description": "description",
        "metadata": "metadata",
    }
    values = {columns[key]: value for key, value in body.items()}
    if not values:
        raise Invalid("Invalid input for field/attribute volume. It must not be empty.")
    check_metadata(values.get("metadata", {}))
    await call.write(lambda tx: volumes.write(tx, calling.one(tx, call), values, call.now))
    return await show(call)


async def delete(call: Call) -> Answer:
    """Delete a volume. If the volume is already being deleted, nothing changes."""
    is_forced = call.options.of(DeletionOptions).takes_force and calling.flag(
        "force", call.last("force", "false")
    )
    calling.flag("cascade", call.last("cascade", "false"))
    if is_forced:
        call.demand(FORCE_DELETE, project_id=call.context.project_id)
    await deleted(call, is_forced=is_forced)
    return Answer(202)


async def deleted(call: Call, *, is_forced: bool) -> None:
    """Delete the volume in the path. The calling function must have checked policy."""
    uuid, owner, request_id = call.params["volume_id"], calling.owner(call), call.context.request_id
    await call.write(
        lambda tx: making_volumes.delete(
            tx, uuid, owner, call.now, is_forced=is_forced, request_id=request_id
        )
    )


async def metadata(call: Call) -> Answer:
    """Show a volume's metadata."""
    volume = await call.read(lambda tx: calling.one(tx, call))
    return Answer(200, {"metadata": dict(volume.metadata)})


async def _change_metadata(
    call: Call, edit: Callable[[dict[str, str]], dict[str, str]]
) -> dict[str, str]:
    def work(tx: Tx) -> dict[str, str]:
        volume = calling.one(tx, call)
        changed = edit(dict(volume.metadata))
        check_metadata(changed)
        volumes.write(tx, volume, {"metadata": changed}, call.now)
        return changed

    return await call.write(work)


async def add_metadata(call: Call) -> Answer:
    """Add items to a volume's metadata."""
    items = call.body["metadata"]
    return Answer(200, {"metadata": await _change_metadata(call, lambda own: {**own, **items})})


async def set_metadata(call: Call) -> Answer:
    """Replace a volume's metadata."""
    items = dict(call.body["metadata"])
    return Answer(200, {"metadata": await _change_metadata(call, lambda _: items)})


async def metadata_item(call: Call) -> Answer:
    """Show one item of a volume's metadata."""
    volume = await call.read(lambda tx: calling.one(tx, call))
    return Answer(200, {"meta": {call.params["key"]: _item(call, volume.metadata)}})


def _item(call: Call, items: Mapping[str, str]) -> str:
    key = call.params["key"]
    if key not in items:
        raise NotFound(f"Volume {call.params['volume_id']} has no metadata with key {key}.")
    return items[key]


async def set_metadata_item(call: Call) -> Answer:
    """Set one item of a volume's metadata."""
    items = call.body["meta"]
    demand_key(call, items)
    await _change_metadata(call, lambda own: {**own, **items})
    return Answer(200, {"meta": dict(items)})


async def remove_metadata_item(call: Call) -> Answer:
    """Remove one item of a volume's metadata."""

    def edit(own: dict[str, str]) -> dict[str, str]:
        _item(call, own)
        return {key: value for key, value in own.items() if key != call.params["key"]}

    await _change_metadata(call, edit)
    return Answer(200)


async def encryption(call: Call) -> Answer:
    """Show a volume's encryption (always empty, because volumes are not encrypted)."""
    await call.read(lambda tx: calling.one(tx, call))
    return Answer(200, {"encryption_key_id": None})
