"""Formats volumes for answers of the newest version of the Block Storage API.

Always true: only administrators see a volume's pool. Answers of older versions have fewer fields,
but no additional ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.volumes import Attachment, AttachStatus, Volume, VolumeStatus, VolumeType
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.volumes.calling import links, moment
from innkeeper.systems.compute.servers import attaching
from innkeeper.systems.volumes import attachments, types, volumes

HOST = "os-vol-host-attr:host"
PROJECT = "os-vol-tenant-attr:tenant_id"


@dataclass(slots=True)
class ShownWith:
    """The types, pools and attachments that are shown with volumes."""

    types: Mapping[int, VolumeType]
    pools: Mapping[ProviderId, str]
    attachments: Mapping[str, Sequence[Attachment]] = field(default_factory=dict)


def read(call: Call, tx: Tx, found: Sequence[Volume]) -> ShownWith:
    """Read the types, pools and attachments of these volumes."""
    by_volume: dict[str, list[Attachment]] = {}
    mine = attachments.of_volumes(tx, [volume.uuid for volume in found])
    for each in attaching.with_hosts(tx, mine) if call.context.is_admin else mine:
        by_volume.setdefault(each.volume_uuid, []).append(each)
    return ShownWith(
        types.by_rows(tx, [each.type_id for each in found]),
        volumes.pool_names(tx, [e.provider_id for e in found if e.provider_id is not None]),
        by_volume,
    )


def brief(call: Call, volume: Volume) -> dict[str, Any]:
    """Return the JSON value of a volume in a list without details."""
    return {"id": volume.uuid, "name": volume.name, "links": links(call, f"volumes/{volume.uuid}")}


def full(call: Call, volume: Volume, shown_with: ShownWith) -> dict[str, Any]:
    """Return the JSON value of a volume with all fields that the caller may see."""
    kind = shown_with.types[volume.type_id]
    metadata = dict(volume.metadata)
    if volume.is_read_only:
        metadata["readonly"] = "True"
    shown: dict[str, Any] = {
        **brief(call, volume),
        "description": volume.description,
        "status": volume.status,
        "size": volume.size_gb,
        "availability_zone": volume.availability_zone,
        "created_at": moment(volume.created_at),
        "updated_at": moment(volume.updated_at),
        "volume_type": kind.name,
        "volume_type_id": kind.uuid,
        "snapshot_id": None,
        "source_volid": volume.source_uuid,
        "metadata": metadata,
        "user_id": volume.user_id,
        "bootable": str(volume.is_bootable).lower(),
        "encrypted": False,
        "replication_status": None,
        "consistencygroup_id": None,
        "group_id": None,
        "multiattach": volume.is_multiattach,
        "attachments": [
            _attachment(call, each)
            for each in shown_with.attachments.get(volume.uuid, ())
            if each.status in (AttachStatus.ATTACHED, AttachStatus.DETACHING)
        ],
        "migration_status": None,
        "shared_targets": False,
        "service_uuid": None,
        "cluster_name": None,
        "consumes_quota": True,
        PROJECT: volume.project_id,
    }
    if volume.image_metadata:
        shown["volume_image_metadata"] = dict(volume.image_metadata)
    if call.context.is_admin:
        shown |= {
            HOST: host(volume, shown_with.pools),
            "os-vol-mig-status-attr:migstat": None,
            "os-vol-mig-status-attr:name_id": None,
            "provider_id": None,
        }
    else:
        shown.pop("cluster_name")
    if volume.fault is not None and volume.status.startswith(VolumeStatus.ERROR):
        shown["fault"] = volume.fault
    return shown


def host(volume: Volume, pools: Mapping[ProviderId, str]) -> str | None:
    """Return a volume's host and pool in Cinder's form ``host@backend#pool``."""
    if volume.provider_id is None:
        return None
    pool = pools.get(volume.provider_id, "")
    return f"{volume.host}@{pool}#{pool}"


def _attachment(call: Call, each: Attachment) -> dict[str, Any]:
    return {
        "id": each.volume_uuid,
        "attachment_id": each.uuid,
        "volume_id": each.volume_uuid,
        "server_id": each.server_uuid,
        "host_name": each.host if call.context.is_admin else None,
        "device": each.device,
        "attached_at": moment(each.attached_at),
    }
