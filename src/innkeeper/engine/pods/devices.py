"""Read the block devices of ``POST /servers`` at a door (gateway to pods).

Always true: each volume that a pod must make for a server has a size. So the volume can count
against the quota before the pod is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.door import Json, objects_of
from innkeeper.domain.errors import Invalid

KEY, OLD_KEY = "block_device_mapping_v2", "block_device_mapping"
VOLUME, IMAGE, SNAPSHOT, LOCAL = "volume", "image", "snapshot", "local"
SIZE_DIGITS_MAX = 12
NO_SNAPSHOTS = "This service does not serve snapshots."


@dataclass(frozen=True, slots=True)
class Device:
    """A block device. If it ``is_new``, the pod makes a volume of ``size_gb`` for it."""

    source: str
    uuid: str | None
    is_new: bool
    size_gb: int = 0
    type_name: str | None = None


def devices_of(fields: Mapping[str, Json]) -> list[Device]:
    """Return the block devices in the body of a server. Raises :class:`Invalid`."""
    found = [_device(each) for each in objects_of(fields.get(KEY))]
    for each in objects_of(fields.get(OLD_KEY)):
        if each.get("snapshot_id"):
            raise Invalid(NO_SNAPSHOTS)
        if each.get("volume_id"):
            found.append(Device(VOLUME, str(each["volume_id"]), is_new=False))
    return found


def _device(each: Mapping[str, Json]) -> Device:
    source = str(each.get("source_type", VOLUME))
    if source == SNAPSHOT:
        raise Invalid(NO_SNAPSHOTS)
    named = each.get("uuid") or each.get(f"{source}_id")
    uuid = None if not named else str(named)
    if source == IMAGE and uuid is None:
        raise Invalid("A block device that is made from an image needs the image's uuid.")
    usual = VOLUME if source == VOLUME else LOCAL
    is_new = source != VOLUME and each.get("destination_type", usual) == VOLUME
    if not is_new:
        return Device(source, uuid, is_new=False)
    named_type = each.get("volume_type")
    type_name = None if named_type is None else str(named_type)
    return Device(source, uuid, True, _size(each.get("volume_size")), type_name)


def _size(told: Json) -> int:
    digits = str(told)[: SIZE_DIGITS_MAX + 1]
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits) <= UNIT_MAX:
        raise Invalid(
            "Block Device Mapping is Invalid: a new volume needs a volume_size, a positive whole "
            "number of GB."
        )
    return int(digits)


def translated(
    told: Sequence[Mapping[str, Json]], images: Mapping[str, str], types: Mapping[str, str]
) -> list[dict[str, Json]]:
    """Return block devices with the image ids and volume type names of a pod.

    ``images`` and ``types`` map the values of the body to those of the pod.
    """
    found = []
    for each in told:
        device = dict(each)
        if device.get("source_type") == IMAGE:
            name = "uuid" if device.get("uuid") else "image_id"
            device[name] = images[str(device[name])]
        type_name = device.get("volume_type")
        if isinstance(type_name, str) and type_name in types:
            device["volume_type"] = types[type_name]
        found.append(device)
    return found
