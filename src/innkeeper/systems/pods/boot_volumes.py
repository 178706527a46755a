"""Count the boot volumes of new servers. A pod makes and deletes them together with the servers.

A routing records the pod of a resource. An open routing stands for a resource that the pod has not
confirmed yet. A create is one request for new servers. Its mark is an id that the pod stores with
each server.

Always true: a boot volume counts against the quota as soon as the create begins. First, an open
routing stands for the volume. When the pod shows the volume among the attachments of its server,
the volume gets its own routing. The open routings of a create first have the create's mark, and
later the id of a server. Open routings are removed when this server is no longer being built, or no
longer exists.

An open routing may never become a volume, because a server may fail before it has its volumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.door import VOLUME, WITH_SERVERS, DoorLimits
from innkeeper.domain.pods import PodRouting
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import routings as door_routings

# Queries that are re-exported unchanged.
open_of = routings.open_with_server


@dataclass(frozen=True, slots=True)
class BootVolume:
    """A volume that a pod makes for each server of a request.

    ``limits`` are the project's quotas. ``image_id`` and ``type_uuid`` are the ids of the image and
    the volume type in this service, not in the pod.
    """

    size_gb: int
    limits: DoorLimits
    type_uuid: str | None = None
    image_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShownVolume:
    """A volume that a pod shows among the attachments of a server."""

    uuid: str
    size_gb: int
    type_uuid: str | None = None


def begin(tx: Tx, begun: PodRouting, wanted: Sequence[BootVolume]) -> None:
    """Record the volumes that a pod will make for new servers.

    ``begun`` is the routing of the request that creates the servers. Raises
    :class:`VolumeQuotaExceeded`.
    """
    for number, each in enumerate(wanted):
        made = _open(begun, begun.top_id, number)
        made = replace(made, size_gb=each.size_gb, type_uuid=each.type_uuid, image_id=each.image_id)
        door_routings.begin(tx, replace(made, number=begun.number), each.limits)


def _open(begun: PodRouting, server_uuid: str, number: int) -> PodRouting:
    return PodRouting(
        0,
        f"{WITH_SERVERS}{server_uuid}:{number}",
        None,
        begun.pod_id,
        begun.project_id,
        VOLUME,
        begun.created_at,
        begun.updated_at,
        user_id=begun.user_id,
        number=1,
        size_gb=0,
        server_uuid=server_uuid,
    )


def settle(tx: Tx, begun: PodRouting, server_uuids: Sequence[str], now: datetime) -> None:
    """Assign the expected volumes of a request to the servers that the pod has made.

    Each expected volume is an open routing: a row for a volume that the pod has not confirmed yet.
    """
    for number, each in enumerate(open_of(tx, begun.top_id)):
        routings.remove(tx, each.id)
        for server_uuid in server_uuids:
            made = replace(_open(begun, server_uuid, number), updated_at=now)
            made = replace(made, size_gb=each.size_gb, type_uuid=each.type_uuid)
            routings.add(tx, replace(made, image_id=each.image_id))


def expect(tx: Tx, server: PodRouting, now: datetime) -> None:
    """Make the service look for the volumes of a newly found server.

    This adds an open routing: a row for a volume that the pod has not confirmed yet.
    """
    routings.add(tx, replace(_open(server, server.top_id, 0), number=0, updated_at=now))


def learn(
    tx: Tx, server_uuid: str, shown: Sequence[ShownVolume], now: datetime, *, is_last: bool
) -> None:
    """Record the volumes that a pod shows with a server.

    With ``is_last``, the server gets no more volumes, because it is no longer being built or no
    longer exists.
    """
    left = list(open_of(tx, server_uuid))
    if not left:
        return
    usual = left[0]
    for each in shown:
        if routings.of_resource(tx, each.uuid, VOLUME):
            continue
        # The volume replaces an open routing, if possible one of the same size. A pod may make a
        # volume larger than requested, so the sizes may differ.
        left.sort(key=lambda one: one.size_gb != each.size_gb)
        took = left.pop(0) if left else None
        if took is not None:
            routings.remove(tx, took.id)
        made = PodRouting(
            0,
            each.uuid,
            each.uuid,
            usual.pod_id,
            usual.project_id,
            VOLUME,
            usual.created_at,
            now,
            user_id=usual.user_id,
            image_id=None if took is None else took.image_id,
            number=1,
            size_gb=each.size_gb,
            type_uuid=each.type_uuid,
            server_uuid=server_uuid,
        )
        routings.add(tx, made)
    for one in left:
        if is_last:
            routings.remove(tx, one.id)
        else:
            door_routings.touch(tx, one.id, now)


def look_again(tx: Tx, server_uuid: str, now: datetime) -> None:
    """Mark the volumes of a deleted server for a check. The pod may have deleted these volumes."""
    routings.change_with_server(tx, server_uuid, {"changing_at": now, "updated_at": now})


def attached(tx: Tx, volume_uuid: str, server_uuid: str, now: datetime) -> None:
    """Record that a volume is attached to a server, and may be deleted with the server."""
    for each in routings.of_resource(tx, volume_uuid, VOLUME):
        if each.bottom_id is not None:
            routings.change(tx, each.id, {"server_uuid": server_uuid, "updated_at": now})
