"""Make, extend and delete volumes, by orders to agents.

The package ``systems.volumes`` makes the decisions.

Always true: a volume that is ``creating``, ``extending`` or ``deleting`` has a pending order, which
was written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid, Refusal
from innkeeper.domain.images import Image
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import SourceImage, Volume, VolumeRequest
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.compute import orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import images
from innkeeper.systems.compute.servers import force_detaching, volume_orders
from innkeeper.systems.volumes import choosing, creating, volumes
from innkeeper.systems.volumes import types as volume_types
from innkeeper.systems.volumes.creating import CreatedVolume, NewVolume, VolumeBatch

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class VolumeContext:
    """The inputs of decisions about volumes, except for the request."""

    context: DecisionContext
    settings: Volumes


def create_together(
    tx: Tx, context: DecisionContext, wanted: Sequence[NewVolume]
) -> list[CreatedVolume | Refusal]:
    """Create volumes, and order agents to make them. See :func:`creating.create_together`.

    A refused volume does not affect the others.
    """
    found = images.get_many(tx, {each.request.image_id or "" for each in wanted} - {""})
    outcomes: dict[int, CreatedVolume | Refusal] = {}
    ready: dict[int, NewVolume] = {}
    for index, each in enumerate(wanted):
        try:
            ready[index] = _with_image(each, found)
        except Refusal as refusal:
            outcomes[index] = refusal
    follower, limits = context.follower, _limits(context)
    made = creating.create_together(tx, follower, list(ready.values()), *limits)
    created = [each for each in made if isinstance(each, CreatedVolume)]
    _order(tx, follower.table, created)
    outcomes |= zip(ready, made, strict=True)
    return [outcomes[index] for index in range(len(wanted))]


def create_all(
    tx: Tx, here: VolumeContext, requests: Sequence[VolumeRequest], *, are_in_one_zone: bool
) -> list[Volume]:
    """Create volumes of one project, and order agents to make them.

    If one of the volumes cannot be created, none is created. With ``are_in_one_zone``, all volumes
    are in the zone of the first volume. Raises :class:`Conflict` if no pool is valid for a volume.
    Also raises the errors of :meth:`VolumeBatch.plan`.
    """
    if not requests:
        return []
    found = images.get_many(tx, {each.image_id or "" for each in requests} - {""})
    follower, zone = here.context.follower, None
    with VolumeBatch(tx, follower, requests, *_limits(here.context)) as batch:
        for each in requests:
            request = each if zone is None else replace(each, availability_zone=zone)
            planned = batch.plan(_with_image(NewVolume(request, here.settings), found))
            if planned.placed is None:
                raise Conflict(choosing.sentence(planned.decided))
            zone = planned.zone if are_in_one_zone else None
        created = batch.write()
    _order(tx, follower.table, created)
    return [each.volume for each in created]


def _limits(context: DecisionContext) -> tuple[float, str]:
    """Return the seconds after which a silent agent counts as down, and the default zone."""
    scheduling, computing = context.scheduling, context.computing
    return computing.service_down_time_s, scheduling.default_availability_zone


def _order(tx: Tx, table: HostTable, created: Sequence[CreatedVolume]) -> None:
    """Give the agents of the chosen hosts the orders to make volumes."""
    new = [
        volume_orders.new(
            each.volume,
            OrderKind.MAKE_VOLUME,
            table.agent_of(table.index_by_name[each.placed.host]),
            each.placed.host,
            each.placed.name,
            each.request_id,
        )
        for each in created
        if each.placed is not None
    ]
    if new:
        orders.add(tx, new, max(each.volume.created_at for each in created))


def _with_image(new: NewVolume, found: Mapping[str, Image]) -> NewVolume:
    """Return a wanted volume with the image that its request names. Raises :class:`Invalid`."""
    image_id = new.request.image_id
    return new if image_id is None else replace(new, image=_image(new.request, found.get(image_id)))


def _image(request: VolumeRequest, found: Image | None) -> SourceImage:
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
    """Choose a pool for a volume without creating the volume. Return the decision in words."""
    kind = volume_types.named(
        tx,
        request.type_name or here.settings.default_volume_type,
        request.project_id,
        is_admin=request.is_admin or request.type_name is None,
    )
    silence_max_s, default_zone = _limits(here.context)
    spec = choosing.spec_of(
        tx,
        request,
        volume_types.demands_of(kind.extra_specs),
        request.size_gb or 1,
        now=request.now,
        takes_hosts=here.settings.volumes_on_hosts,
        silence_max_s=silence_max_s,
        default_zone=default_zone,
    )
    choices = choosing.Choices(tx, here.context.follower.table)
    decided = choices.decide(spec, choosing.REFUSALS_SHOWN)
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
    """Begin to make a volume larger.

    Raises the errors of ``volumes.begin_extend`` and ``volumes.demand_kept``.
    """
    volume = volumes.get(tx, uuid, project_id)
    growing = volumes.begin_extend(
        tx, volume, size_gb, settings, now, is_attached_ok=is_attached_ok
    )
    volumes.demand_kept(tx, volume)
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
    """Begin to delete a volume.

    A volume that is already being deleted is not changed. With ``is_forced``, the volume may have
    any status, and is first detached from its servers. Raises :class:`VolumeBusy` or
    :class:`NotFound`. With ``is_forced``, also raises the errors of ``force_detaching.disconnect``.
    """
    volume = volumes.get(tx, uuid, project_id)
    if volumes.is_being_deleted(tx, volume):
        return
    volumes.demand_deletable(tx, volume, is_forced=is_forced)
    if is_forced:
        force_detaching.release(tx, volume, now)
        # The release may have changed the volume's attachments and its status.
        volume = volumes.get(tx, uuid, project_id)
    volume_orders.begin_delete(tx, volume, now, request_id=request_id)
