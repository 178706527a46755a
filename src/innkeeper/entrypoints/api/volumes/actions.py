"""These handlers carry out actions on volumes, such as extending a volume or setting its status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.volumes import AttachMode, AttachOrigin, AttachStatus, Volume, VolumeStatus
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.request_checks import unknown_action
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.entrypoints.api.volumes.volumes import FORCE_DELETE, check_metadata, deleted
from innkeeper.systems.compute.boot import making_volumes
from innkeeper.systems.compute.servers import force_detaching
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.attachments import NewAttachment

RULE = "volume_extension:volume_actions"
ADMIN_RULE = "volume_extension:volume_admin_actions"


@dataclass(frozen=True, slots=True)
class ExtendOptions:
    """Options that the microversion sets for extending volumes.

    If ``takes_attached`` is true, volumes that are in use can be extended.
    """

    takes_attached: bool = True


async def act(call: Call) -> Answer:
    """Carry out an action on a volume."""
    ((name, arguments),) = call.body.items()
    found = ACTIONS.get(name)
    if found is None:
        why = REFUSED.get(name)
        raise unknown_action(name) if why is None else Invalid(why)
    volume = await call.read(lambda tx: calling.one(tx, call))
    call.demand(found.rule, project_id=volume.project_id, user_id=volume.user_id)
    return await found.run(call, arguments if isinstance(arguments, Mapping) else {})


def rule_of(body: Mapping[str, Any]) -> str | None:
    """Return the rule of the action in a body, or ``None`` if Innkeeper does not implement it."""
    found = ACTIONS.get(next(iter(body)))
    return None if found is None else found.rule


async def _change(call: Call, work: Callable[[Tx, Volume], Any]) -> Answer:
    await call.write(lambda tx: work(tx, calling.one(tx, call)))
    return Answer(202)


async def extend(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Make a volume larger."""
    size_gb, owner = calling.size("new_size", arguments["new_size"]), calling.owner(call)
    takes_attached = call.options.of(ExtendOptions).takes_attached
    await call.write(
        lambda tx: making_volumes.extend(
            tx,
            call.params["volume_id"],
            owner,
            size_gb,
            call.site.settings.volumes,
            is_attached_ok=takes_attached,
            request_id=call.context.request_id,
            now=call.now,
        )
    )
    return Answer(202)


async def reset_status(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Set a volume's status, without any other effect."""
    status = arguments.get("status")
    if arguments.get("migration_status") not in (None, "none"):
        raise Invalid("Volumes are not migrated: omit migration_status.")
    is_detached = arguments.get("attach_status") == "detached"
    if arguments.get("attach_status") == "attached":
        raise Invalid("attach_status can only be set to detached. To attach, create an attachment.")
    if status is None and not is_detached:
        raise Invalid("Invalid input for field/attribute status. It is missing.")
    if status is not None and status not in volumes.SETTABLE:
        raise Invalid(f"Invalid input for field/attribute status. Value: {status}.")

    def work(tx: Tx, volume: Volume) -> None:
        if status is not None:
            values = {"status": status, "prior_status": None}
            volume = volumes.write(tx, volume, values, call.now)
        if is_detached:
            mine = attachments.of_volumes(tx, [volume.uuid])
            if any(each.origin == AttachOrigin.SERVER for each in mine):
                raise Conflict("The volume is attached to a server. Detach it there instead.")
            attachments.remove(tx, mine, call.now)

    return await _change(call, work)


async def set_bootable(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Set whether a server can boot from a volume."""
    is_bootable = calling.flag("bootable", arguments["bootable"])
    await _change(
        call, lambda tx, it: volumes.write(tx, it, {"is_bootable": is_bootable}, call.now)
    )
    return Answer(200)


async def update_readonly(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Set whether a volume is read-only for servers that attach it from now on."""
    is_read_only = calling.flag("readonly", arguments["readonly"])

    def work(tx: Tx, volume: Volume) -> None:
        volumes.demand_status(volume, (VolumeStatus.AVAILABLE,), "update readonly flag")
        volumes.write(tx, volume, {"is_read_only": is_read_only}, call.now)

    return await _change(call, work)


async def force_delete(call: Call, _: Mapping[str, Any]) -> Answer:
    """Delete a volume, regardless of its state."""
    await deleted(call, is_forced=True)
    return Answer(202)


async def force_detach(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Detach a volume from a server, regardless of the states of both."""
    uuid, named = call.params["volume_id"], arguments.get("attachment_id")
    owner = calling.owner(call)
    await call.write(lambda tx: force_detaching.force_detach(tx, uuid, owner, named, call.now))
    return Answer(202)


def _status(allowed: tuple[str, ...], then: str | None, verb: str) -> Run:
    """Return an action that only changes a volume's status.

    Clients that attach volumes themselves call such actions before and after each attachment.
    """

    async def run(call: Call, _: Mapping[str, Any]) -> Answer:
        def work(tx: Tx, volume: Volume) -> None:
            volumes.demand_status(volume, allowed, verb)
            if then is not None:
                volumes.write(tx, volume, {"status": then}, call.now)
                return
            mine = attachments.of_volumes(tx, [volume.uuid])
            status = attachments.status_of(mine)
            volumes.write(tx, volume, {"status": status}, call.now)

        return await _change(call, work)

    return run


async def attach(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Record that a client attached a volume to a server or to a host."""
    server, host = arguments.get("instance_uuid"), arguments.get("host_name")
    if bool(server) == bool(host):
        raise Invalid("Invalid request to attach volume to an instance and a host simultaneously.")
    new = NewAttachment(
        call.site.ids.uuid(),
        call.params["volume_id"],
        calling.server_id(server),
        origin=AttachOrigin.CLIENT,
        status=AttachStatus.ATTACHED,
        mode=arguments.get("mode") or AttachMode.READ_WRITE,
        device=arguments["mountpoint"],
        host=host or None,
    )

    def work(tx: Tx, volume: Volume) -> None:
        if volume.status == VolumeStatus.ATTACHING:
            volume = volumes.write(tx, volume, {"status": VolumeStatus.RESERVED}, call.now)
        attachments.add(tx, volume, new, call.now)

    return await _change(call, work)


async def detach(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Record that a client detached a volume."""
    named = arguments.get("attachment_id")

    def work(tx: Tx, volume: Volume) -> None:
        mine = attachments.of_volumes(tx, [volume.uuid])
        chosen = [each for each in mine if named in (None, each.uuid)]
        if named is not None and not chosen:
            raise NotFound(f"Volume {volume.uuid} has no attachment {named}.")
        if len(chosen) > 1:
            raise Invalid(attachments.ID_IS_REQUIRED)
        for each in chosen:
            attachments.demand_of_client(each)
        if volume.status == VolumeStatus.DETACHING:
            volumes.write(tx, volume, {"status": VolumeStatus.IN_USE}, call.now)
        attachments.remove(tx, chosen, call.now)
        # If the volume has no attachment, the line above has not set the status.
        attachments.follow(tx, [volume.uuid], call.now)

    return await _change(call, work)


async def set_image_metadata(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Add items to the metadata that a volume has from its image."""
    items = arguments["metadata"]

    def work(tx: Tx) -> dict[str, Any]:
        volume = calling.one(tx, call)
        whole = {**volume.image_metadata, **items}
        check_metadata(whole)
        volumes.write(tx, volume, {"image_metadata": whole}, call.now)
        return whole

    return Answer(200, {"metadata": await call.write(work)})


async def unset_image_metadata(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Remove an item of the metadata that a volume has from its image."""
    key = arguments["key"]

    def work(tx: Tx, volume: Volume) -> None:
        if key not in volume.image_metadata:
            raise NotFound("Metadata item was not found.")
        left = {name: each for name, each in volume.image_metadata.items() if name != key}
        volumes.write(tx, volume, {"image_metadata": left}, call.now)

    await _change(call, work)
    return Answer(200)


async def show_image_metadata(call: Call, _: Mapping[str, Any]) -> Answer:
    """Show the metadata that a volume has from its image."""
    volume = await call.read(lambda tx: calling.one(tx, call))
    return Answer(200, {"metadata": dict(volume.image_metadata)})


Run = Callable[[Call, Mapping[str, Any]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class VolumeAction:
    """An action of the API, with its policy rule and its handler."""

    rule: str
    run: Run


ACTIONS: Mapping[str, VolumeAction] = {
    "os-extend": VolumeAction("volume:extend", extend),
    "os-reset_status": VolumeAction(f"{ADMIN_RULE}:reset_status", reset_status),
    "os-set_bootable": VolumeAction(f"{RULE}:set_bootable", set_bootable),
    "os-update_readonly_flag": VolumeAction("volume:update_readonly_flag", update_readonly),
    "os-force_delete": VolumeAction(FORCE_DELETE, force_delete),
    "os-force_detach": VolumeAction(f"{ADMIN_RULE}:force_detach", force_detach),
    "os-reserve": VolumeAction(
        f"{RULE}:reserve", _status((VolumeStatus.AVAILABLE,), VolumeStatus.ATTACHING, "reserve")
    ),
    "os-unreserve": VolumeAction(
        f"{RULE}:unreserve", _status((VolumeStatus.ATTACHING,), None, "unreserve")
    ),
    "os-begin_detaching": VolumeAction(
        f"{RULE}:begin_detaching", _status((VolumeStatus.IN_USE,), VolumeStatus.DETACHING, "detach")
    ),
    "os-roll_detaching": VolumeAction(
        f"{RULE}:roll_detaching", _status((VolumeStatus.DETACHING,), None, "roll detaching")
    ),
    "os-attach": VolumeAction(f"{RULE}:attach", attach),
    "os-detach": VolumeAction(f"{RULE}:detach", detach),
    "os-set_image_metadata": VolumeAction(
        "volume_extension:volume_image_metadata:set", set_image_metadata
    ),
    "os-unset_image_metadata": VolumeAction(
        "volume_extension:volume_image_metadata:remove", unset_image_metadata
    ),
    "os-show_image_metadata": VolumeAction(
        "volume_extension:volume_image_metadata:show", show_image_metadata
    ),
}
_NOT_MIGRATED = "Volumes are not migrated between pools here."
REFUSED: Mapping[str, str] = {
    "os-retype": "The type of a volume cannot be changed here. Create a volume of the other type.",
    "os-migrate_volume": _NOT_MIGRATED,
    "os-migrate_volume_completion": _NOT_MIGRATED,
    "os-volume_upload_image": "Images cannot be made from volumes here: images have no data.",
    "os-reimage": "A volume cannot be overwritten with an image here. Create another volume.",
    "revert": "Volumes cannot be reverted, because snapshots are not supported.",
    "os-initialize_connection": "Use the attachments API instead of os-initialize_connection.",
    "os-terminate_connection": "Use the attachments API instead of os-terminate_connection.",
    "os-unmanage": "Volumes cannot be unmanaged.",
}
"""The reason why an action of the Block Storage API is refused, by the name of the action."""
