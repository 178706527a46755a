"""Check the invariants of volumes and their attachments in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.volumes import VolumeStatus, VolumeUsage
from innkeeper.store.queries.volumes import attachments as attachment_rows
from innkeeper.store.queries.volumes import audit, quota_usages
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import attachments, types, volumes

ROOM = "volumes"
ORDERED = (VolumeStatus.CREATING, VolumeStatus.EXTENDING, VolumeStatus.DELETING)
_invariant = partial(Invariant, ROOM)
UNBACKED = _invariant(
    "unbacked-volume",
    "a volume on a pool has one allocation on that pool, as large as the volume",
    "Replace the volume's allocations with its size on its pool, or delete the volume by force.",
)
HELD_BY_NONE = _invariant(
    "held-by-no-volume",
    "every consumer of the type VOLUME is an existing volume",
    "Delete the consumer's allocations through the Placement API, unless another service made "
    "them.",
)
IDLE = _invariant(
    "idle-volume",
    "a volume that is being made, extended or deleted has a pending order",
    "Reset the status of the volume to error, and delete the volume.",
)
OF_DELETED = _invariant(
    "attached-to-deleted",
    "no volume is attached to a deleted server",
    "Delete the attachment.",
    "removes the attachment",
)
CROWDED = _invariant(
    "crowded-volume",
    "a volume is attached to several servers only if it is a multiattach volume",
    "Detach the volume from all servers but one.",
)
NOT_OFFERED = _invariant(
    "not-offered",
    "a volume in the status awaiting-transfer has a transfer",
    "Reset the status of the volume to available.",
    "makes the volume available again",
)
UNATTACHED = _invariant(
    "unattached-volume",
    "a volume that is reserved, in use, or being attached or detached has an attachment",
    "Reset the status of the volume to available.",
    "makes the volume available again",
)
WRONG_USAGE = _invariant(
    "wrong-volume-usage",
    "the volume quota usage of a project and a type is the sum over its volumes of this type",
    "Correct the project's volume quota usage in the database.",
    "computes the usage again from the project's volumes",
)
INVARIANTS = (
    UNBACKED,
    HELD_BY_NONE,
    IDLE,
    OF_DELETED,
    CROWDED,
    NOT_OFFERED,
    UNATTACHED,
    WRONG_USAGE,
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about volumes."""
    for uuid, wanted, held, count in audit.unbacked(tx):
        yield UNBACKED.broken(
            uuid,
            f"volume {uuid} should hold {wanted} GiB on its pool, but holds {held} there, with "
            f"{count} allocations",
        )
    for (uuid,) in audit.without_volume(tx):
        yield HELD_BY_NONE.broken(uuid, f"consumer {uuid} has the type VOLUME, but is no volume")
    for uuid, status in audit.idle(tx, ORDERED):
        yield IDLE.broken(uuid, f"volume {uuid} is {status}, but has no pending order")
    for uuid, volume, server in audit.of_deleted_servers(tx):
        yield OF_DELETED.broken(uuid, f"volume {volume} is attached to the deleted server {server}")
    for uuid, count in audit.crowded(tx):
        yield CROWDED.broken(uuid, f"volume {uuid} is attached to {count} servers")
    for (uuid,) in audit.not_offered(tx):
        yield NOT_OFFERED.broken(uuid, f"volume {uuid} awaits a transfer that does not exist")
    for uuid, status in audit.unattached(tx, attachments.STATUS_OF.values()):
        yield UNATTACHED.broken(uuid, f"volume {uuid} is {status}, but has no attachment")
    for project, whose, recorded, counted in _wrong_usages(tx):
        yield WRONG_USAGE.broken(
            project,
            f"the volume quota usage (volumes, GiB) of {whose} is {_shown(recorded)}, but its "
            f"volumes add up to {_shown(counted)}",
        )


def _wrong_usages(tx: Tx) -> Iterator[tuple[str, str, VolumeUsage, VolumeUsage]]:
    """Yield rows of (project, project and type in words, recorded usage, counted usage)."""
    wrong = quota_usages.wrong(tx)
    kinds = types.by_rows(tx, [type_id for (_, type_id), _, _ in wrong])
    for (project, type_id), recorded, counted in wrong:
        name = kinds[type_id].name if type_id in kinds else type_id
        yield project, f"project {project} and type {name}", recorded, counted


def _shown(usage: VolumeUsage) -> str:
    return f"({usage.volumes}, {usage.gigabytes})"


def remove_attachments(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Remove attachments to deleted servers."""
    told = []
    gone = {uuid for uuid, _, _ in audit.of_deleted_servers(tx)} & set(keys)
    for uuid in sorted(gone):
        found = attachment_rows.by_uuid(tx, uuid)
        if found is not None:
            attachments.remove(tx, [found], now)
            told.append(f"the attachment {uuid} of volume {found.volume_uuid} is removed")
    return told


def withdraw_offers(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set volumes to available if they await a transfer that does not exist."""
    told = []
    for uuid in sorted({row[0] for row in audit.not_offered(tx)} & set(keys)):
        values = {"status": VolumeStatus.AVAILABLE}
        volumes.write(tx, volumes.get(tx, uuid), values, now)
        told.append(f"volume {uuid} is available")
    return told


def free_unattached(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set volumes to available if they have the status of an attached volume, but no attachment."""
    found = {row[0] for row in audit.unattached(tx, attachments.STATUS_OF.values())} & set(keys)
    attachments.follow(tx, sorted(found), now)
    return [f"volume {uuid} is available" for uuid in sorted(found)]


def count_again(tx: Tx, keys: Sequence[str], _: datetime) -> list[str]:
    """Set the volume quota usage of projects to the sums over their volumes."""
    told = [
        f"the volume quota usage of {whose} is now {_shown(counted)}"
        for project, whose, _, counted in _wrong_usages(tx)
        if project in keys
    ]
    found = [each for each in quota_usages.wrong(tx) if each[0][0] in keys]
    quota_usages.add(tx, {key: counted + -recorded for key, recorded, counted in found})
    return told


REPAIRS: Mapping[str, Callable[[Tx, Sequence[str], datetime], list[str]]] = {
    OF_DELETED.kind: remove_attachments,
    NOT_OFFERED.kind: withdraw_offers,
    UNATTACHED.kind: free_unattached,
    WRONG_USAGE.kind: count_again,
}
