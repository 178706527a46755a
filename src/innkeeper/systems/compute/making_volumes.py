"""Make, extend and delete volumes: the decisions of the volumes room, with their orders to agents.

Always true: a volume that is ``creating``, ``extending`` or ``deleting`` has a pending order, which
was written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import OrderKind
from innkeeper.domain.errors import Invalid
from innkeeper.domain.images import Image
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import SourceImage, Volume, VolumeRequest, VolumeStatus
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import images, volume_orders
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.servers import force_detaching
from innkeeper.systems.volumes import choosing, volumes
from innkeeper.systems.volumes import types as volume_types

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class VolumeContext:
    """What decisions about volumes read, besides the request."""

    context: DecisionContext
    settings: Volumes

    @property
    def silence_max_s(self) -> float:
        """How long an agent may be silent and still be up."""
        return self.context.computing.service_down_time_s

    @property
    def default_zone(self) -> str:
        """The zone of volumes that could be in several zones."""
        return self.context.scheduling.default_availability_zone


def create(tx: Tx, here: VolumeContext, request: VolumeRequest) -> Volume:
    """Create a volume, and order its pool to make it. Raises the errors of ``volumes.create``."""
    volume = volumes.create(
        tx,
        here.context.follower.table,
        request,
        here.settings,
        here.silence_max_s,
        here.default_zone,
        _image(tx, request),
    )
    if volume.status == VolumeStatus.CREATING:
        is_given = volume_orders.give(
            tx, volume, OrderKind.MAKE_VOLUME, request.now, request_id=request.request_id
        )
        assert is_given, "the chosen host has a row"
    return volume


def _image(tx: Tx, request: VolumeRequest) -> SourceImage | None:
    if request.image_id is None:
        return None
    found: Image | None = images.get_many(tx, [request.image_id]).get(request.image_id)
    if found is None or not (request.is_admin or images.may_see(found, request.project_id)):
        raise Invalid(
            f"Invalid image identifier or unable to access requested image: {request.image_id}."
        )
    if found.status != images.ACTIVE:
        raise Invalid(f"Invalid input received: Image {found.id} is not active.")
    metadata = {
        "image_id": found.id,
        "image_name": found.name or "",
        "disk_format": found.disk_format or "",
        "container_format": found.container_format or "",
        "min_ram": str(found.min_ram_mb),
        "min_disk": str(found.min_disk_gb),
        "size": str(found.size_bytes or 0),
        "checksum": found.checksum or "",
        **found.properties,
    }
    size_gb = -(-(found.size_bytes or 0) // GIB)
    return SourceImage(found.id, found.min_disk_gb, size_gb, metadata)


def explain(tx: Tx, here: VolumeContext, request: VolumeRequest) -> Mapping[str, Any]:
    """Decide about a volume without creating it. Return the decision in words."""
    kind = volume_types.named(
        tx,
        request.type_name or here.settings.default_volume_type,
        request.project_id,
        is_admin=request.is_admin or request.type_name is None,
    )
    spec = choosing.spec_of(
        tx,
        request,
        volume_types.demands_of(kind.extra_specs),
        request.size_gb or 1,
        takes_hosts=here.settings.volumes_on_hosts,
        silence_max_s=here.silence_max_s,
        default_zone=here.default_zone,
    )
    table = here.context.follower.table
    decided = choosing.decide(tx, table, spec, choosing.REFUSALS_SHOWN)
    reason = None if decided.placed else choosing.sentence(decided)
    return {**choosing.report(decided), "message": reason}


def extend(
    tx: Tx,
    uuid: str,
    project_id: str | None,
    size_gb: int,
    settings: Volumes,
    *,
    is_attached_ok: bool,
    request_id: str | None,
    now: datetime,
) -> None:
    """Begin to make a volume larger. Raises the errors of ``volumes.begin_extend``."""
    volume = volumes.get(tx, uuid, project_id)
    growing = volumes.begin_extend(
        tx, volume, size_gb, settings, now, is_attached_ok=is_attached_ok
    )
    kind = OrderKind.GROW_VOLUME
    if not volume_orders.give(tx, growing, kind, now, request_id=request_id):
        raise Invalid(f"Invalid volume: no host can reach the pool of volume {uuid}.")


def delete(
    tx: Tx,
    uuid: str,
    project_id: str | None,
    now: datetime,
    *,
    is_forced: bool = False,
    request_id: str | None = None,
) -> None:
    """Begin to delete a volume. A volume that is being deleted already is left alone.

    With ``is_forced``, its status does not matter, and it is detached from its servers first.
    Raises :class:`VolumeBusy` or :class:`NotFound`, and the errors of
    ``force_detaching.disconnect``.
    """
    volume = volumes.get(tx, uuid, project_id)
    if volume.status == VolumeStatus.DELETING:
        return
    volumes.demand_deletable(tx, volume, is_forced=is_forced)
    if is_forced:
        force_detaching.release(tx, volume, now)
        # Its status follows from its attachments.
        volume = volumes.get(tx, uuid, project_id)
    volume_orders.begin_delete(tx, volume, now, request_id=request_id)
