"""This module reads the block devices of ``POST /servers``, and boots servers with their volumes.

Always true: after a refused boot, volumes that were reserved for the boot are free again, and
volumes that were created for the boot are deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Invalid, QuotaExceeded, Refusal, VolumeQuotaExceeded
from innkeeper.domain.ids import ServerId, canonical_uuid
from innkeeper.domain.volumes import BlockDevice, DeviceSource, VolumeRequest
from innkeeper.engine.retry import VOLUMES
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.boot import reserving_volumes
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.making_volumes import VolumeContext
from innkeeper.systems.compute.boot.reserving_volumes import Reserved

LOCAL, VOLUME = "local", "volume"
INDEX_DIGITS_MAX = 6
SIZE_DIGITS_MAX = 10


def invalid(reason: str) -> Invalid:
    """Return the error for block devices, in the words that clients expect."""
    return Invalid(f"Block Device Mapping is Invalid: {reason}")


def is_volume(device: Mapping[str, Any]) -> bool:
    """Return whether a block device is a volume, and not a local disk."""
    return str(device.get("destination_type", _usual_place(device))) == VOLUME


def _usual_place(device: Mapping[str, Any]) -> str:
    return VOLUME if device.get("source_type") in (DeviceSource.VOLUME, "snapshot") else LOCAL


def boot_index(device: Mapping[str, Any]) -> int | None:
    """Return the boot index of a device, or ``None`` if the server does not boot from it."""
    text = device.get("boot_index")
    if text is None or len(str(text)) > INDEX_DIGITS_MAX:
        return None
    return int(text) if int(text) >= 0 else None


def is_volume_backed(devices: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a server with these devices boots from a volume."""
    return any(is_volume(each) and boot_index(each) == 0 for each in devices)


def volumes_of(devices: Sequence[Mapping[str, Any]]) -> tuple[BlockDevice, ...]:
    """Return the volumes among the block devices of a body.

    Raises :class:`Invalid` for invalid devices.
    """
    return tuple(_volume(each) for each in devices if is_volume(each))


def _volume(device: Mapping[str, Any]) -> BlockDevice:
    source = device.get("source_type", DeviceSource.VOLUME)
    if source == "snapshot":
        raise invalid("snapshots are not supported.")
    named = device.get("uuid") or device.get(f"{source}_id")
    source_id = None if named is None else canonical_uuid(str(named))
    if source != DeviceSource.BLANK and source_id is None:
        raise invalid(f"a device with the source_type {source} needs the uuid of the {source}.")
    size_gb = _size(device)
    if source != DeviceSource.VOLUME and size_gb is None:
        raise invalid(f"a new volume from the source_type {source} needs a volume_size.")
    if source == DeviceSource.BLANK and boot_index(device) == 0:
        raise invalid("a server cannot boot from a blank volume.")
    return BlockDevice(
        source=source,
        source_id=source_id,
        size_gb=size_gb,
        type_name=device.get("volume_type") or None,
        boot_index=boot_index(device),
        deletes_volume=device.get("delete_on_termination") in (True, "True", "true", "1", 1),
        device=device.get("device_name") or None,
        tag=device.get("tag"),
    )


def _size(device: Mapping[str, Any]) -> int | None:
    text = device.get("volume_size")
    if text in (None, ""):
        return None
    digits = str(text)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= SIZE_DIGITS_MAX
    if not is_number or not 1 <= int(digits) <= UNIT_MAX:
        raise invalid("volume_size must be a positive whole number.")
    return int(digits)


async def booted(
    call: Call,
    request: BootRequest,
    devices: Sequence[BlockDevice],
    boot: Callable[[BootRequest], Awaitable[Booted]],
) -> Booted:
    """Reserve the volumes of a boot request, and boot its servers.

    If the boot is refused, undo the reservation.
    """
    if request.count_max > 1 and any(each.source == DeviceSource.VOLUME for each in devices):
        raise invalid("several servers cannot boot with the same volume.")
    settings, ids = call.site.settings.volumes, call.site.ids
    template = VolumeRequest(
        uuid="",
        project_id=request.project_id,
        user_id=request.user_id,
        size_gb=None,
        seed=0,
        now=request.now,
        is_admin=request.is_admin,
        name="",
        availability_zone=None if settings.cross_az_attach else request.availability_zone,
        request_id=request.request_id,
    )

    def reserve(tx: Tx, context: DecisionContext) -> Reserved:
        here = VolumeContext(context, settings)
        return reserving_volumes.reserve(
            tx, here, devices, request.server_ids, template, ids, is_repeat=request.is_repeat
        )

    try:
        reserved = await call.decide(reserve, VOLUMES)
    except VolumeQuotaExceeded as error:
        raise QuotaExceeded(error.message) from error
    try:
        zone = reserved.zone or request.availability_zone
        outcome = await boot(replace(request, has_volumes=True, availability_zone=zone))
    except Refusal:
        # If this fails, a sweep frees the volumes.
        with suppress(Refusal):
            await _undo(call, request.server_ids, reserved)
        raise
    left = [each for each in request.server_ids if each not in outcome.server_ids]
    if left:
        await _undo(call, left, reserved)
    return outcome


async def _undo(call: Call, server_ids: Sequence[ServerId], reserved: Reserved) -> None:
    await call.write(lambda tx: reserving_volumes.undo(tx, server_ids, reserved, call.now))
