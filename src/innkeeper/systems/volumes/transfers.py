"""Transfer volumes between projects.

Always true: a volume with a transfer is ``awaiting-transfer``, so nothing else happens to it. Only
a salted hash of a transfer's key is stored.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import Volume, VolumeStatus, VolumeTransfer
from innkeeper.store.queries.volumes import transfers
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import quotas, types, volumes

# Queries that are re-exported unchanged.
page = transfers.page


def get(tx: Tx, uuid: str, project_id: str | None) -> VolumeTransfer:
    """Return a transfer that a project offers.

    Without ``project_id``, the transfer may belong to any project.
    """
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else transfers.by_uuid(tx, canonical)
    if found is None or (project_id is not None and found.project_id != project_id):
        raise NotFound(f"Transfer {uuid} could not be found.")
    return found


def create(
    tx: Tx, volume: Volume, uuid: str, name: str | None, key: str, salt: str, now: datetime
) -> VolumeTransfer:
    """Offer an available volume to the project that knows ``key``."""
    volumes.demand_status(volume, (VolumeStatus.AVAILABLE,), "transfer")
    volumes.demand_unattached(tx, volume)
    volumes.demand_kept(tx, volume)
    stale = transfers.of_volume(tx, volume.uuid)
    if stale is not None:
        # An administrator has reset the volume's status, which ends its earlier offer.
        transfers.delete(tx, stale.id)
    volumes.write(tx, volume, {"status": VolumeStatus.AWAITING_TRANSFER}, now)
    transfers.insert(
        tx,
        {
            "uuid": uuid,
            "volume_uuid": volume.uuid,
            "name": name,
            "project_id": volume.project_id,
            "salt": salt,
            "key_hash": _hash(salt, key),
            "created_at": now,
        },
    )
    return get(tx, uuid, None)


def accept(
    tx: Tx, uuid: str, key: str, project_id: str, user_id: str, settings: Volumes, now: datetime
) -> tuple[VolumeTransfer, Volume]:
    """Take over a volume, which then counts against the quota of the accepting project.

    If :class:`NotFound` or :class:`Invalid` is raised, nothing has changed.
    """
    transfer = get(tx, uuid, None)
    if not hmac.compare_digest(_hash(transfer.salt, key), transfer.key_hash):
        raise Invalid(f"Invalid auth key: Attempt to transfer {uuid} with invalid auth key.")
    volume = volumes.get(tx, transfer.volume_uuid)
    volumes.demand_status(volume, (VolumeStatus.AWAITING_TRANSFER,), "accept the transfer")
    kind = types.by_rows(tx, [volume.type_id])[volume.type_id]
    # Raises NotFound if the type is private, and is not shared with the project.
    types.get(tx, kind.uuid, project_id, is_admin=False)
    if project_id != volume.project_id:
        quotas.demand_room(
            tx,
            project_id,
            kind,
            quotas.defaults(settings),
            size_gb=volume.held_gb,
            more_volumes=1,
            more_gb=volume.held_gb,
        )
    volumes.give_to(tx, volume, project_id, user_id, now)
    transfers.delete(tx, transfer.id)
    return transfer, volumes.get(tx, volume.uuid)


def delete(tx: Tx, uuid: str, project_id: str | None, now: datetime) -> None:
    """Withdraw the offer of a volume. The volume is available again."""
    transfer = get(tx, uuid, project_id)
    transfers.delete(tx, transfer.id)
    volume = volumes.get(tx, transfer.volume_uuid)
    if volume.status == VolumeStatus.AWAITING_TRANSFER:
        volumes.write(tx, volume, {"status": VolumeStatus.AVAILABLE}, now)


def _hash(salt: str, key: str) -> str:
    return hashlib.sha256(f"{salt}:{key}".encode()).hexdigest()
