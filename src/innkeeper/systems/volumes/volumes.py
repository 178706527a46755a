"""Find, change, extend, transfer and delete volumes.

Another module creates volumes.

Always true: a volume's row and its allocation change in one transaction. A volume with a pool has
an allocation of its size on the pool until the volume's row is deleted.

A volume in ``error`` may have data on its pool. So the volume keeps its allocation until an agent
has deleted the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import CapacityExceeded, Invalid, NotFound
from innkeeper.domain.ids import ConsumerUuid, canonical_uuid
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import CONSUMER_TYPE, Volume, VolumeBusy, VolumeStatus, VolumeUsage
from innkeeper.store.queries.volumes import attachments, volumes
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import allocations, claims
from innkeeper.systems.volumes import quotas, types

DELETABLE = (
    VolumeStatus.AVAILABLE,
    VolumeStatus.ERROR,
    VolumeStatus.ERROR_EXTENDING,
    VolumeStatus.ERROR_DELETING,
)
SETTABLE = frozenset(
    {
        VolumeStatus.CREATING,
        VolumeStatus.AVAILABLE,
        VolumeStatus.DELETING,
        VolumeStatus.ERROR,
        VolumeStatus.ERROR_DELETING,
        VolumeStatus.ATTACHING,
        VolumeStatus.DETACHING,
        VolumeStatus.IN_USE,
        VolumeStatus.MAINTENANCE,
        VolumeStatus.RESERVED,
        VolumeStatus.EXTENDING,
        VolumeStatus.ERROR_EXTENDING,
    }
)
"""Statuses that an administrator may set."""

# Queries that are re-exported unchanged.
by_uuids = volumes.by_uuids
pool_names = volumes.pool_names
sums_by_pool = volumes.sums_by_pool
decision = volumes.decision
has_drop_order = volumes.has_drop_order
are_on = volumes.are_on


def get(tx: Tx, uuid: str, project_id: str | None = None) -> Volume:
    """Return a volume.

    Raises :class:`NotFound` for an unknown volume, or if another project owns the volume. Without
    ``project_id``, the volume may belong to any project.
    """
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else volumes.by_uuid(tx, canonical)
    if found is None or (project_id is not None and found.project_id != project_id):
        raise NotFound(f"Volume {uuid} could not be found.")
    return found


def write(tx: Tx, volume: Volume, values: Mapping[str, Any], now: datetime) -> Volume:
    """Write columns of a volume. Raises :class:`ConcurrentUpdate` if the row has changed."""
    volumes.change(tx, volume, {**values, "updated_at": now})
    return dataclasses.replace(volume, **values, updated_at=now)


def begin_extend(
    tx: Tx, volume: Volume, size_gb: int, settings: Volumes, now: datetime, *, is_attached_ok: bool
) -> Volume:
    """Claim the new size of a volume, and set its status to ``extending``.

    Raises :class:`Invalid` for a size that is not larger, or for a volume in a wrong status. Raises
    :class:`CapacityExceeded` if the pool is full.
    """
    statuses = [VolumeStatus.AVAILABLE, *([VolumeStatus.IN_USE] if is_attached_ok else [])]
    demand_status(volume, statuses, "extend")
    if size_gb <= volume.size_gb:
        raise Invalid(
            f"Invalid input received: New size for extend must be greater than current size. "
            f"(current: {volume.size_gb}, extended: {size_gb})."
        )
    if volume.growing_to_gb is not None:
        # An administrator has reset the status before the agent reported the extension.
        raise VolumeBusy(
            f"Invalid volume: Volume {volume.uuid} is still being extended to "
            f"{volume.growing_to_gb} GiB."
        )
    kind = types.by_rows(tx, [volume.type_id])[volume.type_id]
    more_gb = size_gb - volume.size_gb
    quotas.demand_room(
        tx,
        volume.project_id,
        kind,
        quotas.defaults(settings),
        size_gb=size_gb,
        more_volumes=0,
        more_gb=more_gb,
    )
    _hold(tx, volume, size_gb, volume.project_id, volume.user_id, now)
    quotas.add(tx, {_counted(volume): VolumeUsage(0, more_gb)})
    values = {
        "status": VolumeStatus.EXTENDING,
        "prior_status": volume.status,
        "growing_to_gb": size_gb,
    }
    return write(tx, volume, values, now)


def end_extend(tx: Tx, volume: Volume, fault: str | None, status: str, now: datetime) -> None:
    """Apply the result of an extension. After a failure, the volume keeps its old size.

    ``status`` is the volume's status after a success. This status may differ from the status before
    the extension, because the volume may have been detached meanwhile. If an administrator has
    reset the status meanwhile, the status is not changed.

    After a failure, an allocation that cannot be replaced is left as it is, and the audit reports
    it. An error would refuse all results that are recorded together with this one.
    """
    if volume.growing_to_gb is None:
        return
    values: dict[str, Any] = {"growing_to_gb": None, "prior_status": None}
    if fault is None:
        values["size_gb"] = volume.growing_to_gb
    else:
        with suppress(VolumeBusy):
            _hold(tx, volume, volume.size_gb, volume.project_id, volume.user_id, now)
        quotas.add(tx, {_counted(volume): VolumeUsage(0, volume.size_gb - volume.held_gb)})
        status = VolumeStatus.ERROR_EXTENDING
    if volume.status == VolumeStatus.EXTENDING:
        values |= {"status": status, "fault": fault}
    write(tx, volume, values, now)


def _counted(volume: Volume) -> tuple[str, int]:
    """Return the project and the type whose quota usage includes a volume."""
    return volume.project_id, volume.type_id


def _hold(
    tx: Tx, volume: Volume, size_gb: int, project_id: str, user_id: str, now: datetime
) -> None:
    """Replace a volume's allocation. Raises :class:`VolumeBusy`, and then changes nothing."""
    if volume.provider_id is None or volume.class_name is None:
        raise VolumeBusy(f"Invalid volume: Volume {volume.uuid} is on no pool.")
    consumer, held = allocations.of_consumer(tx, volume.uuid)
    if consumer is None or len(held) != 1:
        raise VolumeBusy(f"Invalid volume: Volume {volume.uuid} has no allocation on its pool.")
    claim = ConsumerClaim(
        uuid=ConsumerUuid(volume.uuid),
        project_id=project_id,
        user_id=user_id,
        amounts={volume.provider_id: {held[0].class_id: size_gb}},
        seen=consumer.generation,
        consumer_type=CONSUMER_TYPE,
    )
    try:
        claims.replace(tx, [claim], now)
    except CapacityExceeded as error:
        raise VolumeBusy(
            f"Invalid volume: the pool of volume {volume.uuid} has too little free capacity."
        ) from error


def give_to(tx: Tx, volume: Volume, project_id: str, user_id: str, now: datetime) -> None:
    """Change the owner of a volume and of its allocation."""
    if volume.provider_id is not None:
        _hold(tx, volume, volume.held_gb, project_id, user_id, now)
    if project_id != volume.project_id:
        given = (project_id, volume.type_id)
        quotas.add(tx, {_counted(volume): -volume.usage, given: volume.usage})
    values = {
        "project_id": project_id,
        "user_id": user_id,
        "status": VolumeStatus.AVAILABLE,
        "prior_status": None,
    }
    write(tx, volume, values, now)


def demand_status(volume: Volume, statuses: Collection[str], action: str) -> None:
    """Raise :class:`VolumeBusy` for a volume that has none of these statuses."""
    if volume.status not in statuses:
        raise VolumeBusy(
            f"Invalid volume: Volume {volume.uuid} status must be {' or '.join(statuses)} to "
            f"{action}, but current status is: {volume.status}."
        )


def demand_deletable(tx: Tx, volume: Volume, *, is_forced: bool) -> None:
    """Raise :class:`VolumeBusy` if a volume cannot be deleted in its present state."""
    if not is_forced and volume.status not in DELETABLE:
        raise VolumeBusy(
            "Invalid volume: Volume status must be available or error or error_extending or "
            "error_deleting and must not be migrating, attached, belong to a group, have "
            "snapshots, awaiting a transfer, or be disassociated from snapshots after volume "
            f"transfer. The status is {volume.status}."
        )
    if not is_forced:
        demand_unattached(tx, volume)


def demand_unattached(tx: Tx, volume: Volume) -> None:
    """Raise :class:`VolumeBusy` if a volume has attachments.

    The volume's status does not matter.
    """
    if attachments.of_volumes(tx, [volume.uuid]):
        raise VolumeBusy(f"Invalid volume: Volume {volume.uuid} is still attached.")


def demand_kept(tx: Tx, volume: Volume) -> None:
    """Raise :class:`VolumeBusy` if the order to delete a volume has not ended.

    The volume's status does not matter. An administrator may have reset it.
    """
    if has_drop_order(tx, volume.uuid):
        raise VolumeBusy(f"Invalid volume: Volume {volume.uuid} is still being deleted.")


def is_being_deleted(tx: Tx, volume: Volume) -> bool:
    """Return True if a volume is ``deleting`` and an agent has or will get the order.

    If an administrator has set the status, there is no order.
    """
    return volume.status == VolumeStatus.DELETING and has_drop_order(tx, volume.uuid)


def forget(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Delete volumes whose data is gone, with their allocations, attachments and transfers."""
    left = attachments.of_volumes(tx, uuids)
    attachments.delete(tx, [each.uuid for each in left])
    claims.release(tx, [ConsumerUuid(uuid) for uuid in uuids], now)
    quotas.add(tx, {key: -usage for key, usage in quotas.used_by(tx, uuids).items()})
    volumes.delete(tx, uuids)
