"""Reserve, make and end attachments of volumes.

Always true: the status of a volume follows from its attachments. While another task is in progress,
the status names this task instead. A volume has several attachments only if its type allowed
several when the volume was made.

This module gives no orders to agents. The ``origin`` of an attachment says who connects the volume:
an agent or a client.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.domain.ids import IdSource, ProviderId, canonical_uuid
from innkeeper.domain.volumes import (
    Attachment,
    AttachMode,
    AttachOrigin,
    AttachStatus,
    Volume,
    VolumeBusy,
    VolumeStatus,
)
from innkeeper.store.queries.volumes import attachments
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import volumes

STATUS_OF: Mapping[str, str] = {
    AttachStatus.RESERVED: VolumeStatus.RESERVED,
    AttachStatus.ATTACHING: VolumeStatus.ATTACHING,
    AttachStatus.DETACHING: VolumeStatus.DETACHING,
    AttachStatus.ATTACHED: VolumeStatus.IN_USE,
}
ID_IS_REQUIRED = "attachment_id is required, because the volume has several attachments."
ORDER = (
    AttachStatus.ATTACHED,
    AttachStatus.ATTACHING,
    AttachStatus.DETACHING,
    AttachStatus.RESERVED,
)
"""If the attachments of a volume have different statuses, the status that comes first in this order
counts. So a volume is ``detaching`` only if none of its attachments is attached or attaching."""
FOLLOWING = frozenset({*STATUS_OF.values(), VolumeStatus.AVAILABLE})
"""The statuses that a volume has because of its attachments."""

# Queries that are re-exported unchanged.
of_volumes = attachments.of_volumes
page = attachments.page
without_server = attachments.without_server
stuck_since = attachments.stuck_since


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A wanted attachment. ``uuid`` is a new id."""

    uuid: str
    volume_uuid: str
    server_uuid: str | None
    origin: str = AttachOrigin.SERVER
    status: str = AttachStatus.RESERVED
    mode: str = AttachMode.READ_WRITE
    device: str | None = None
    host: str | None = None
    connector: Mapping[str, Any] | None = None
    deletes_volume: bool = False
    boot_index: int | None = None
    tag: str | None = None


def get(tx: Tx, uuid: str, project_id: str | None) -> tuple[Attachment, Volume]:
    """Return an attachment and its volume. Raises the errors of :func:`volumes.get`."""
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else attachments.by_uuid(tx, canonical)
    if found is not None:
        volume = volumes.get(tx, found.volume_uuid)
        if project_id is None or volume.project_id == project_id:
            return found, volume
    raise NotFound(f"Volume attachment could not be found with filter: attachment_id = {uuid}.")


def of_servers(tx: Tx, uuids: Collection[str]) -> list[Attachment]:
    """Return the attachments that agents made, or will make, for these servers, oldest first.

    Attachments that clients made are left out. A client may name any server, even a server of
    another project, so such an attachment must not affect the server.
    """
    return [
        each for each in attachments.of_servers(tx, uuids) if each.origin == AttachOrigin.SERVER
    ]


def of_server(tx: Tx, server_uuid: str, volume_uuid: str) -> Attachment | None:
    """Return the attachment of a volume to a server."""
    found = of_servers(tx, [server_uuid])
    return next((each for each in found if each.volume_uuid == volume_uuid), None)


def has_servers(tx: Tx, volume_uuid: str) -> bool:
    """Return True if agents have connected a volume to servers, or are about to connect it."""
    mine = attachments.of_volumes(tx, [volume_uuid])
    return any(each.origin == AttachOrigin.SERVER for each in mine)


def add(tx: Tx, volume: Volume, new: NewAttachment, now: datetime) -> Attachment:
    """Add an attachment. Raises :class:`VolumeBusy` if the volume cannot be attached now."""
    mine = attachments.of_volumes(tx, [volume.uuid])
    # While Nova moves a server, it attaches the server's volumes on both hosts.
    is_moving = bool(mine) and all(
        each.server_uuid == new.server_uuid is not None
        and AttachOrigin.SERVER not in (each.origin, new.origin)
        for each in mine
    )
    if not is_moving and any(e.server_uuid == new.server_uuid is not None for e in mine):
        raise VolumeBusy(
            f"Invalid volume: volume {volume.uuid} is already attached to server {new.server_uuid}."
        )
    allowed = {VolumeStatus.AVAILABLE, VolumeStatus.RESERVED}
    if volume.is_multiattach or is_moving:
        allowed |= {VolumeStatus.IN_USE, VolumeStatus.ATTACHING}
    elif mine:
        # An administrator may have reset the status of a volume that is still attached.
        allowed = set()
    if volume.status not in allowed:
        raise VolumeBusy(
            f"Invalid volume: Volume {volume.uuid} status must be available or downloading to "
            f"reserve, but the current status is {volume.status}."
        )
    volumes.demand_kept(tx, volume)
    is_read_only = volume.is_read_only or new.mode == AttachMode.READ_ONLY
    attachments.insert(tx, _row(new, AttachMode.READ_ONLY if is_read_only else new.mode, now))
    follow(tx, [volume.uuid], now)
    return _known(tx, new.uuid)


def reserve_new(tx: Tx, new: NewAttachment, now: datetime) -> None:
    """Add an attachment of a volume that is being made for a server."""
    attachments.insert(tx, _row(new, new.mode, now))


def _row(new: NewAttachment, mode: str, now: datetime) -> dict[str, Any]:
    is_attached = new.status == AttachStatus.ATTACHED
    return {
        **{field.name: getattr(new, field.name) for field in dataclasses.fields(new)},
        "mode": mode,
        "attached_at": now if is_attached else None,
        "created_at": now,
        "updated_at": now,
    }


def _known(tx: Tx, uuid: str) -> Attachment:
    found = attachments.by_uuid(tx, uuid)
    assert found is not None, "it was inserted in this transaction"
    return found


def change(tx: Tx, attachment: Attachment, values: Mapping[str, Any], now: datetime) -> Attachment:
    """Change an attachment, and its volume's status."""
    if values.get("status") == AttachStatus.ATTACHED and attachment.attached_at is None:
        values = {**values, "attached_at": now}
    attachments.change(tx, attachment, {**values, "updated_at": now})
    follow(tx, [attachment.volume_uuid], now)
    return _known(tx, attachment.uuid)


def rename(tx: Tx, mine: Sequence[Attachment], ids: IdSource, now: datetime) -> tuple[str, ...]:
    """Give attachments new ids, and return the new ids. Raises the errors of ``change``."""
    new = tuple(ids.uuid() for _ in mine)
    for each, uuid in zip(mine, new, strict=True):
        attachments.change(tx, each, {"uuid": uuid, "updated_at": now})
    return new


def remove(tx: Tx, gone: Sequence[Attachment], now: datetime) -> None:
    """Delete attachments, and set their volumes' statuses."""
    attachments.delete(tx, [each.uuid for each in gone])
    follow(tx, {each.volume_uuid for each in gone}, now)


def demand_of_client(attachment: Attachment) -> None:
    """Raise :class:`Conflict` for an attachment that only the Compute API may change."""
    if attachment.origin == AttachOrigin.SERVER:
        raise Conflict(
            f"Attachment {attachment.uuid} belongs to the server {attachment.server_uuid}. "
            "Detach the volume from the server with the Compute API instead."
        )


def follow(tx: Tx, uuids: Iterable[str], now: datetime) -> None:
    """Set the statuses of volumes according to their attachments."""
    found = volumes.by_uuids(tx, list(uuids))
    by_volume: dict[str, list[Attachment]] = {}
    for each in attachments.of_volumes(tx, list(found)):
        by_volume.setdefault(each.volume_uuid, []).append(each)
    for uuid, volume in found.items():
        status = status_of(by_volume.get(uuid, []))
        if volume.status in FOLLOWING and volume.status != status:
            volumes.write(tx, volume, {"status": status}, now)


def status_of(mine: Collection[Attachment]) -> str:
    """Return the status of a volume with these attachments."""
    statuses = {each.status for each in mine}
    for status in ORDER:
        if status in statuses:
            return STATUS_OF[status]
    return VolumeStatus.AVAILABLE


def pools_of(tx: Tx, servers: Collection[str]) -> frozenset[ProviderId]:
    """Return the pools of the volumes of these servers."""
    mine = of_servers(tx, servers)
    found = volumes.by_uuids(tx, [each.volume_uuid for each in mine])
    return frozenset(each.provider_id for each in found.values() if each.provider_id is not None)


def boots_from_volume(tx: Tx, server_uuid: str) -> bool:
    """Return True if a server boots from one of its volumes."""
    return any(each.boot_index == 0 for each in of_servers(tx, [server_uuid]))


def orders_body(tx: Tx, server_uuid: str) -> list[dict[str, Any]]:
    """Return the volumes of a server in the form in which orders to agents list them."""
    mine = of_servers(tx, [server_uuid])
    found = volumes.by_uuids(tx, [each.volume_uuid for each in mine])
    pools = volumes.pool_names(
        tx, [v.provider_id for v in found.values() if v.provider_id is not None]
    )
    listed = []
    for each in mine:
        if each.status != AttachStatus.DETACHING:
            volume = found[each.volume_uuid]
            pool = None if volume.provider_id is None else pools.get(volume.provider_id)
            listed.append(order_item(each, volume, pool))
    return listed


def order_item(attachment: Attachment, volume: Volume, pool: str | None) -> dict[str, Any]:
    """Return the facts that an agent needs to connect a volume."""
    return {
        "attachment_id": attachment.uuid,
        "volume_id": volume.uuid,
        "size_gb": volume.size_gb,
        "pool": pool,
        "host": volume.host,
        "device": attachment.device,
        "mode": attachment.mode,
        "boot_index": attachment.boot_index,
        "tag": attachment.tag,
        "is_multiattach": volume.is_multiattach,
        "metadata": dict(volume.metadata),
    }


ROOT_DEVICE = "/dev/vda"
"""The device name of the disk that a server boots from."""
DEVICES = tuple(f"/dev/vd{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")


def next_device(taken: Iterable[str | None], *, is_root: bool = False) -> str:
    """Return the first free device name of a server.

    Raises :class:`Conflict` if all names are used.
    """
    used = set(taken)
    if is_root and ROOT_DEVICE not in used:
        return ROOT_DEVICE
    for each in DEVICES:
        if each not in used:
            return each
    raise Conflict("The server has no free device name for another volume.")
