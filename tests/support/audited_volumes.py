"""Plants defects of volumes, in addition to those of the other rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from innkeeper.domain.volumes import (
    CONSUMER_TYPE,
    AttachOrigin,
    AttachStatus,
    VolumeStatus,
    VolumeUsage,
)
from innkeeper.store.tables import placement, volumes
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import quotas
from tests.support.clouds import NOW

VOLUME = "d0000000-0000-4000-8000-000000000001"
CONSUMER = "d0000000-0000-4000-8000-000000000002"
ATTACHMENTS = ("d0000000-0000-4000-8000-00000000000a", "d0000000-0000-4000-8000-00000000000b")
Plant = Callable[[Tx, Any], object]


def add_volume(tx: Tx, status: str, **more: Any) -> None:
    """Add a volume without a pool."""
    columns = {
        "uuid": VOLUME,
        "project_id": "project",
        "user_id": "user",
        "type_id": 1,
        "size_gb": 1,
        "status": status,
        "availability_zone": "nova",
        "is_bootable": False,
        "is_read_only": False,
        "is_multiattach": False,
        "image_metadata": {},
        "metadata": {},
        "created_at": NOW,
        "updated_at": NOW,
    }
    tx.execute(volumes.volumes.insert(), {**columns, **more})
    quotas.add(tx, {("project", 1): VolumeUsage(1, 1)})


def add_attachment(tx: Tx, uuid: str, server: str) -> None:
    """Attach the volume to a server."""
    columns = {
        "uuid": uuid,
        "volume_uuid": VOLUME,
        "server_uuid": server,
        "origin": AttachOrigin.SERVER,
        "status": AttachStatus.ATTACHED,
        "mode": "rw",
        "deletes_volume": False,
        "created_at": NOW,
        "updated_at": NOW,
    }
    tx.execute(volumes.volume_attachments.insert(), columns)


def _unbacked(tx: Tx, _: Any) -> None:
    provider = tx.execute(placement.resource_providers.select().limit(1)).one().id
    add_volume(tx, VolumeStatus.AVAILABLE, provider_id=provider, class_name="DISK_GB", host="h0")


def _held_by_none(tx: Tx, _: Any) -> None:
    provider = tx.execute(placement.resource_providers.select().limit(1)).one().id
    columns = {
        "uuid": CONSUMER,
        "project_id": "project",
        "user_id": "user",
        "generation": 1,
        "consumer_type": CONSUMER_TYPE,
        "created_at": NOW,
        "updated_at": NOW,
    }
    tx.execute(placement.consumers.insert(), columns)
    named = placement.resource_classes.select().where(
        placement.resource_classes.c.name == "DISK_GB"
    )
    tx.execute(
        placement.allocations.insert(),
        {
            "resource_provider_id": provider,
            "consumer_id": CONSUMER,
            "resource_class_id": tx.execute(named).one().id,
            "used": 1,
            "created_at": NOW,
        },
    )


def _attached_to_deleted(tx: Tx, it: Any) -> None:
    add_volume(tx, VolumeStatus.IN_USE)
    add_attachment(tx, ATTACHMENTS[0], it.deleted)


def _crowded(tx: Tx, it: Any) -> None:
    add_volume(tx, VolumeStatus.IN_USE)
    for uuid, server in zip(ATTACHMENTS, (it.first, it.second), strict=True):
        add_attachment(tx, uuid, server)


def _wrong_usage(tx: Tx, _: Any) -> None:
    quotas.add(tx, {("project", 1): VolumeUsage(1, 5)})


PLANTS: Mapping[str, Plant] = {
    "unbacked-volume": _unbacked,
    "held-by-no-volume": _held_by_none,
    "idle-volume": lambda tx, _: add_volume(tx, VolumeStatus.CREATING),
    "attached-to-deleted": _attached_to_deleted,
    "crowded-volume": _crowded,
    "not-offered": lambda tx, _: add_volume(tx, VolumeStatus.AWAITING_TRANSFER),
    "unattached-volume": lambda tx, _: add_volume(tx, VolumeStatus.IN_USE),
    "wrong-volume-usage": _wrong_usage,
}
