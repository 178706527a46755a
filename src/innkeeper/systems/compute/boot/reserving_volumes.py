"""Reserve and make the volumes of servers that are about to boot.

The volumes are reserved before the servers exist, under the ids that the servers will have. If the
boot is refused, the caller undoes the reservation.

Always true: servers have at most one reservation, even if several processes attempt their boot.
Only the attempt that has the reservation can undo it.

If the process dies before the boot, a reservation is left without a server. A periodic task removes
such reservations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.ids import IdSource, ServerId
from innkeeper.domain.volumes import Attachment, BlockDevice, DeviceSource, Volume, VolumeRequest
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import making_volumes
from innkeeper.systems.compute.boot.making_volumes import VolumeContext
from innkeeper.systems.compute.servers import volume_orders
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.attachments import NewAttachment


@dataclass(frozen=True, slots=True)
class Reserved:
    """The reserved volumes of a boot, and the availability zone of its servers.

    ``attachments`` has the ids of all attachments. ``made`` has the ids of the volumes that were
    made for the boot. ``zone`` is ``None`` if servers may use volumes of any zone.
    """

    attachments: tuple[str, ...]
    made: tuple[str, ...]
    zone: str | None


def reserve(
    tx: Tx,
    here: VolumeContext,
    devices: Sequence[BlockDevice],
    server_ids: Sequence[ServerId],
    template: VolumeRequest,
    ids: IdSource,
    *,
    is_repeat: bool = False,
) -> Reserved:
    """Reserve the existing volumes of each server, and make its new volumes.

    ``template`` has the project, the zone and the other fields that all new volumes share. If
    ``is_repeat`` is True, an earlier attempt to boot these servers may have reserved their volumes.
    This attempt then takes over the reservations of servers that are not booted yet. Raises
    :class:`Invalid` for a volume or image that cannot be used. Raises :class:`Conflict` if no pool
    is valid. Raises :class:`VolumeQuotaExceeded` if the quota is too small.
    """
    earlier = _earlier(tx, server_ids, len(devices), is_repeat=is_repeat)
    if earlier is not None:
        return _take_over(tx, here, devices, earlier, ids, template.now)
    named = _named(devices)
    crosses = here.settings.cross_az_attach
    if not crosses:
        template = replace(template, availability_zone=_zone_of(tx, devices, template))
    wanted = [
        _request(each, template, ids)
        for _ in server_ids
        for each in devices
        if each.source != DeviceSource.VOLUME
    ]
    made = making_volumes.create_all(tx, here, wanted, are_in_one_zone=not crosses)
    if made and not crosses:
        template = replace(template, availability_zone=made[0].availability_zone)
    fresh = iter(made)
    added: list[str] = []
    for server_id in server_ids:
        taken = list(named)
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
            added.append(new.uuid)
            if each.source == DeviceSource.VOLUME:
                attachments.add(tx, _existing(tx, each, template), new, template.now)
            else:
                uuid = next(fresh).uuid
                attachments.reserve_new(tx, replace(new, volume_uuid=uuid), template.now)
    zone = None if crosses else template.availability_zone
    return Reserved(tuple(added), tuple(each.uuid for each in made), zone)


def _named(devices: Sequence[BlockDevice]) -> list[str]:
    """Return the device names in the request.

    If the root disk is not a volume, its device name is included. Raises :class:`Invalid` if two
    names are the same.
    """
    found = [each.device for each in devices if each.device is not None]
    if not any(each.boot_index == 0 for each in devices):
        found.append(attachments.ROOT_DEVICE)
    for each in found:
        if found.count(each) > 1:
            raise Invalid(f"The supplied device path ({each}) is in use.")
    return found


def _earlier(
    tx: Tx, server_ids: Sequence[ServerId], count: int, *, is_repeat: bool
) -> Sequence[Attachment] | None:
    """Return the attachments of an earlier attempt, for servers that are not booted yet.

    ``count`` is the number of volumes of each server. Returns ``None`` if there was no earlier
    attempt. Raises :class:`Conflict` if this is not a repeat, or if the earlier attempt reserved
    only some of the volumes.
    """
    booted = servers.ever_known(tx, server_ids)
    mine = attachments.of_servers(tx, set(server_ids) - booted)
    if not booted and not mine:
        return None
    is_whole = bool(booted) or len(mine) == len(server_ids) * count
    if not is_repeat or not is_whole:
        # Without this check, a suspended process that continues would reserve more volumes.
        raise Conflict("Another attempt to boot these servers has begun. Wait for its result.")
    return mine


def _take_over(
    tx: Tx,
    here: VolumeContext,
    devices: Sequence[BlockDevice],
    mine: Sequence[Attachment],
    ids: IdSource,
    now: datetime,
) -> Reserved:
    """Give an earlier attempt's attachments new ids, so that only this attempt can undo them."""
    given = {each.source_id for each in devices if each.source == DeviceSource.VOLUME}
    uuids = [each.volume_uuid for each in mine]
    zone = None
    if uuids and not here.settings.cross_az_attach:
        zone = volumes.by_uuids(tx, uuids[:1])[uuids[0]].availability_zone
    made = tuple(each for each in uuids if each not in given)
    return Reserved(attachments.rename(tx, mine, ids, now), made, zone)


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


def _request(device: BlockDevice, template: VolumeRequest, ids: IdSource) -> VolumeRequest:
    """Return the request for a new volume of a server."""
    is_copy = device.source == DeviceSource.IMAGE
    return replace(
        template,
        uuid=ids.uuid(),
        seed=ids.seed(),
        size_gb=device.size_gb,
        type_name=device.type_name,
        image_id=device.source_id if is_copy else None,
    )


def undo(tx: Tx, server_ids: Collection[ServerId], reserved: Reserved, now: datetime) -> None:
    """Free the volumes of servers that were not booted, and delete their new volumes.

    If a server exists, it keeps its volumes, because its boot was committed although an error was
    raised. If another attempt has taken over the reservation of a server, the server also keeps its
    volumes.
    """
    left = set(server_ids) - servers.ever_known(tx, server_ids)
    found = attachments.of_servers(tx, left)
    mine = [each for each in found if each.uuid in reserved.attachments]
    attachments.remove(tx, mine, now)
    gone = {each.volume_uuid for each in mine} & set(reserved.made)
    for volume in volumes.by_uuids(tx, gone).values():
        volume_orders.begin_delete(tx, volume, now)
