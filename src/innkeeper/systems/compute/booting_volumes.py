"""Reserve and make the volumes of servers that are about to boot.

The volumes are reserved before the servers exist, under the ids that the servers will have. If the
boot is refused, the caller undoes the reservation.

May be false: a reservation belongs to a server. If the process dies before the boot, there is no
such server. A sweep then removes the reservation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.ids import IdSource, ServerId
from innkeeper.domain.volumes import BlockDevice, DeviceSource, Volume, VolumeRequest, VolumeStatus
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import making_volumes, volume_orders
from innkeeper.systems.compute.making_volumes import VolumeContext
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.attachments import NewAttachment


@dataclass(frozen=True, slots=True)
class Reserved:
    """The ids of the volumes that were made for a boot, and the zone that the servers must be in.

    ``zone`` is ``None`` if servers may use volumes of any zone.
    """

    made: tuple[str, ...]
    zone: str | None


def reserve(
    tx: Tx,
    here: VolumeContext,
    devices: Sequence[BlockDevice],
    server_ids: Sequence[ServerId],
    template: VolumeRequest,
    ids: IdSource,
) -> Reserved:
    """Reserve the volumes of each server, and make the new ones.

    ``template`` has the project, the zone and the other fields that all new volumes share. Raises
    :class:`Invalid` for a volume or image that cannot be used, :class:`Conflict` if no pool is
    valid, and :class:`VolumeQuotaExceeded`.
    """
    made: list[str] = []
    crosses = here.settings.cross_az_attach
    if not crosses:
        template = replace(template, availability_zone=_zone_of(tx, devices, template))
    for server_id in server_ids:
        taken: list[str | None] = []
        if not any(each.boot_index == 0 for each in devices):
            taken.append("/dev/vda")
        for each in devices:
            device = each.device or attachments.next_device(taken, is_root=each.boot_index == 0)
            taken.append(device)
            new = NewAttachment(
                ids.uuid(),
                each.source_id or "",
                server_id,
                device=device,
                deletes_volume=each.deletes_volume,
                boot_index=each.boot_index,
                tag=each.tag,
            )
            if each.source == DeviceSource.VOLUME:
                volume = _existing(tx, each, template)
                attachments.add(tx, volume, new, template.now)
            else:
                if made:
                    # The table must show what the volumes before have taken of their pools.
                    here.context.follower.catch_up(tx)
                volume = _new(tx, here, each, template, ids)
                made.append(volume.uuid)
                if not crosses:
                    template = replace(template, availability_zone=volume.availability_zone)
                attachments.reserve_new(tx, replace(new, volume_uuid=volume.uuid), template.now)
    return Reserved(tuple(made), None if crosses else template.availability_zone)


def _zone_of(tx: Tx, devices: Sequence[BlockDevice], template: VolumeRequest) -> str | None:
    """Return the requested zone, or the zone of the existing volumes. Raises :class:`Invalid`."""
    existing = [e.source_id or "" for e in devices if e.source == DeviceSource.VOLUME]
    found = volumes.by_uuids(tx, existing).values()
    zones = sorted({each.availability_zone for each in found})
    if template.availability_zone is None and len(zones) > 1:
        raise Invalid(f"The volumes of a server must be in one zone, not in {', '.join(zones)}.")
    return template.availability_zone or next(iter(zones), None)


def _existing(tx: Tx, device: BlockDevice, template: VolumeRequest) -> Volume:
    try:
        volume = volumes.get(tx, device.source_id or "", template.project_id)
    except NotFound as error:
        raise Invalid(
            f"Block Device Mapping is Invalid: failed to get volume {device.source_id}."
        ) from error
    if device.boot_index == 0 and not volume.is_bootable:
        raise Invalid(f"Block Device {volume.uuid} is not bootable.")
    zone = template.availability_zone
    if zone is not None and volume.availability_zone != zone:
        raise Invalid(
            f"Invalid volume: the server and volume {volume.uuid} are not in the same "
            f"availability_zone. Volume is in {volume.availability_zone}"
        )
    return volume


def _new(
    tx: Tx, here: VolumeContext, device: BlockDevice, template: VolumeRequest, ids: IdSource
) -> Volume:
    is_copy = device.source == DeviceSource.IMAGE
    request = replace(
        template,
        uuid=ids.uuid(),
        seed=ids.seed(),
        size_gb=device.size_gb,
        type_name=device.type_name,
        image_id=device.source_id if is_copy else None,
    )
    volume = making_volumes.create(tx, here, request)
    if volume.status != VolumeStatus.CREATING:
        raise Conflict(volume.fault or "No pool was found for a volume of the server.")
    return volume


def undo(tx: Tx, server_ids: Collection[ServerId], made: Collection[str], now: datetime) -> None:
    """Free the volumes of servers that were not booted, and delete those made for them.

    A server that exists keeps its volumes: its boot may have been committed without an answer.
    """
    mine = attachments.of_servers(tx, set(server_ids) - servers.ever_known(tx, server_ids))
    attachments.remove(tx, mine, now)
    gone = {each.volume_uuid for each in mine} & set(made)
    for volume in volumes.by_uuids(tx, gone).values():
        volume_orders.begin_delete(tx, volume, now)
