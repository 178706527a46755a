"""Routings: rows that record which pod has a resource, such as a server or volume.

An open routing stands for a resource that the pod has not confirmed yet. A create is a request for
new resources. Its mark is an id that the pod stores with each resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.door import MAY_TAKE, SERVER, TAKES, DoorAmounts, DoorLimits
from innkeeper.domain.errors import AlreadyExists, NotFound, QuotaExceeded
from innkeeper.domain.pods import PodRouting
from innkeeper.domain.volumes import VolumeLimits
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.names import could_be_stored
from innkeeper.systems.pods import pod_groups
from innkeeper.systems.volumes import quotas as volume_quotas
from innkeeper.systems.volumes import types

# Queries that are re-exported unchanged.
page = routings.page
homes = routings.homes
of_resources = routings.of_resources
pods_of = routings.pods_of
has_type = routings.has_type
open_ones = routings.open_ones
open_in_each = routings.open_in_each
used = routings.used
used_by_type = routings.used_by_type
known = routings.of_resource
drop_notes = routings.drop_notes

DIGEST_CHARS = 32


def create(tx: Tx, wanted: PodRouting) -> PodRouting:
    """Add a routing.

    Raises :class:`AlreadyExists` if the resource already has a routing to the pod.
    """
    if routings.found(tx, wanted.top_id, wanted.pod_id, wanted.resource_type) is not None:
        raise AlreadyExists(
            f"A routing of the {wanted.resource_type} {wanted.top_id} to this pod exists already."
        )
    return replace(wanted, id=routings.add(tx, wanted))


def delete(tx: Tx, row_id: int) -> None:
    """Delete a routing. The resource stays in the pod. Raises :class:`NotFound`."""
    get(tx, row_id)
    routings.remove(tx, row_id)


def get(tx: Tx, row_id: int) -> PodRouting:
    """Return a routing. Raises :class:`NotFound`."""
    found = routings.by_id(tx, row_id)
    if found is None:
        raise NotFound(f"Routing {row_id} could not be found.")
    return found


def type_named(tx: Tx, name: object) -> str | None:
    """Return the uuid of the volume type with this name, or ``None``.

    The name comes from a pod's answer, and may be any value.
    """
    if not isinstance(name, str) or not could_be_stored(name):
        return None
    kind = types.found_by_name(tx, name)
    return None if kind is None else kind.uuid


def place_of(tx: Tx, top_id: str, resource_type: str) -> PodRouting:
    """Return the routing of a resource that a pod has confirmed.

    Raises :class:`NotFound`.
    """
    for each in routings.of_resource(tx, top_id, resource_type):
        if each.bottom_id is not None:
            return each
    raise NotFound(f"{resource_type.capitalize()} {top_id} could not be found.")


def begin(tx: Tx, wanted: PodRouting, limits: DoorLimits) -> PodRouting:
    """Record a request for new resources, before a pod is asked to create them.

    The ``top_id`` of the record is the mark that the pod stores with each resource. Raises
    :class:`QuotaExceeded`. Raises :class:`AlreadyExists` for a volume that is being taken over.
    """
    number = wanted.number or 0
    demand_room(tx, wanted, number, amounts_of(wanted), limits)
    pod_groups.demand_room(tx, wanted, limits.group_members)
    if wanted.top_id.startswith(TAKES):
        # The write is refused if another project is taking over the volume.
        return create(tx, wanted)
    return replace(wanted, id=routings.add(tx, wanted))


def demand_room(
    tx: Tx, routing: PodRouting, number: int, more: DoorAmounts, limits: DoorLimits
) -> None:
    """Raise :class:`QuotaExceeded` if ``number`` more resources would exceed a quota.

    ``more`` has the amounts of these resources.
    """
    if routing.resource_type != SERVER:
        _demand_volumes(tx, routing, number, more.size_gb, limits)
        return
    used, times = routings.used(tx, routing.project_id, SERVER), max(number, 1)
    _demand("instances", number, used[0], limits.number)
    _demand("cores", more.vcpus * times, used[1], limits.vcpus)
    _demand("ram", more.memory_mb * times, used[2], limits.memory_mb)


def _demand_volumes(
    tx: Tx, routing: PodRouting, number: int, more_gb: int, limits: DoorLimits
) -> None:
    type_uuid = routing.type_uuid or ""
    of_type = {
        ("volumes", type_uuid): limits.type_number,
        ("gigabytes", type_uuid): limits.type_size_gb,
    }
    volume_quotas.demand(
        VolumeLimits(limits.number, limits.size_gb, limits.per_volume_gb, of_type),
        routings.used_by_type(tx, routing.project_id),
        (type_uuid, limits.type_name),
        size_gb=more_gb + (0 if number else routing.size_gb or 0),
        more_volumes=number,
        more_gb=more_gb * max(number, 1),
    )


def _demand(name: str, requested: int, used: int, limit: int) -> None:
    if limit != UNLIMITED and requested > 0 and used + requested > limit:
        raise QuotaExceeded(
            f"Quota exceeded for {name}: Requested {requested}, but already used {used} of "
            f"{limit} {name}"
        )


def settle(tx: Tx, begun: PodRouting, bottom_ids: Sequence[str], now: datetime) -> list[str]:
    """Replace the routing of a request by routings of the created resources. Return their ids.

    A second call changes nothing. If another pod has a resource with the same id, this id is left
    out, because requests could not tell the two resources apart.
    """
    if len(bottom_ids) == 1 and _confirm(tx, begun, bottom_ids[0], now):
        return list(bottom_ids)
    found = routings.by_id(tx, begun.id)
    is_open = found is not None and found.bottom_id is None
    if is_open:
        routings.remove(tx, begun.id)
    known_ones: dict[str, list[PodRouting]] = {}
    for each in routings.of_resources(tx, bottom_ids, begun.resource_type):
        known_ones.setdefault(each.top_id, []).append(each)
    settled, fresh = [], []
    for bottom_id in dict.fromkeys(bottom_ids):
        known = known_ones.get(bottom_id, [])
        if any(each.pod_id != begun.pod_id for each in known) or not (is_open or known):
            continue
        if known and is_open and begun.top_id.startswith(TAKES):
            owner = {"project_id": begun.project_id, "user_id": begun.user_id, "updated_at": now}
            routings.change(tx, known[0].id, owner)
        elif not known:
            made = replace(begun, top_id=bottom_id, bottom_id=bottom_id, number=1, updated_at=now)
            fresh.append(replace(made, deleted_at=None))
        settled.append(bottom_id)
    routings.add_many(tx, fresh)
    return settled


def _confirm(tx: Tx, begun: PodRouting, bottom_id: str, now: datetime) -> bool:
    """Turn the routing of a request into the routing of its only resource, with one write.

    Return False if this is not possible.
    """
    if begun.deleted_at is not None or routings.of_resource(tx, bottom_id, begun.resource_type):
        return False
    return routings.confirm(tx, begun.id, bottom_id, now)


def forget(tx: Tx, row_id: int) -> None:
    """Forget a resource that its pod certainly does not have, and no longer count it as usage."""
    routings.remove(tx, row_id)


def lose(tx: Tx, routing: PodRouting, now: datetime) -> None:
    """Forget a resource that its pod does not have any more.

    If the resource is a server, the pod may have deleted volumes with the server. So these volumes
    are marked for a check.
    """
    routings.remove(tx, routing.id)
    if routing.resource_type == SERVER:
        routings.change_with_server(tx, routing.top_id, {"changing_at": now, "updated_at": now})


@dataclass(frozen=True, slots=True)
class LostResource:
    """A resource that its pod no longer had at the time ``now``."""

    routing: PodRouting
    now: datetime


def lose_together(tx: Tx, lost: Sequence[LostResource]) -> list[None]:
    """Forget several resources, like :func:`lose`."""
    for each in lost:
        lose(tx, each.routing, each.now)
    return [None] * len(lost)


def lapse(tx: Tx, begun: PodRouting, now: datetime) -> None:
    """End the takeover of a volume, because the pod has probably not carried it out.

    The takeover no longer counts against the quota. The request may still reach the pod, so a note
    records that the project has asked for the volume.
    """
    uuid = begun.top_id.removeprefix(TAKES)
    name = f"{MAY_TAKE}{uuid}:{sha256(begun.project_id.encode()).hexdigest()[:DIGEST_CHARS]}"
    routings.remove(tx, begun.id)
    for each in routings.of_resource(tx, name, begun.resource_type):
        routings.remove(tx, each.id)
    note = PodRouting(
        0, name, None, begun.pod_id, begun.project_id, begun.resource_type, begun.created_at, now
    )
    routings.add(tx, replace(note, user_id=begun.user_id))


def grow(tx: Tx, row_id: int, wanted: DoorAmounts, limits: DoorLimits, now: datetime) -> PodRouting:
    """Record the larger of the old and new amounts, before a pod is asked to change a resource.

    Raises :class:`NotFound` and :class:`QuotaExceeded`.
    """
    routing = get(tx, row_id)
    has = amounts_of(routing)
    both = DoorAmounts(
        max(has.vcpus, wanted.vcpus),
        max(has.memory_mb, wanted.memory_mb),
        max(has.size_gb, wanted.size_gb),
        max(has.disk_gb, wanted.disk_gb),
    )
    more = DoorAmounts(
        both.vcpus - has.vcpus, both.memory_mb - has.memory_mb, both.size_gb - has.size_gb
    )
    demand_room(tx, routing, 0, more, limits)
    routings.change(tx, row_id, {**asdict(both), "changing_at": now, "updated_at": now})
    return get(tx, row_id)


def retype(tx: Tx, row_id: int, type_uuid: str, limits: DoorLimits, now: datetime) -> PodRouting:
    """Record that a volume may get another type, before the pod is asked to change the type.

    The volume counts with its old type until the pod shows the new type. ``limits`` are the limits
    of the new type. Raises :class:`NotFound` and :class:`VolumeQuotaExceeded`.
    """
    routing = get(tx, row_id)
    if routing.type_uuid != type_uuid:
        wanted = replace(routing, type_uuid=type_uuid)
        only_of_type = replace(limits, number=UNLIMITED, size_gb=UNLIMITED)
        _demand_volumes(tx, wanted, 1, routing.size_gb or 0, only_of_type)
    routings.change(tx, row_id, {"changing_at": now, "updated_at": now})
    return get(tx, row_id)


def recount(
    tx: Tx,
    seen: PodRouting,
    amounts: DoorAmounts | None,
    now: datetime,
    type_uuid: str | None = None,
) -> None:
    """Record the amounts of a resource, and that the resource is no longer changing.

    If the pod was asked for another change after the caller read the routing ``seen``, do nothing.
    If the amounts are ``None``, the recorded amounts are kept. If the routing has a volume type,
    ``type_uuid`` replaces this type.
    """
    found = routings.by_id(tx, seen.id)
    if found is not None and found.changing_at == seen.changing_at:
        fields: dict[str, object] = {} if amounts is None else asdict(amounts)
        if None not in (type_uuid, found.type_uuid):
            fields["type_uuid"] = type_uuid
        routings.change(tx, seen.id, {**fields, "changing_at": None, "updated_at": now})


def amounts_of(routing: PodRouting) -> DoorAmounts:
    """Return the amounts that each resource of a routing adds to the usage."""
    return DoorAmounts(
        routing.vcpus or 0, routing.memory_mb or 0, routing.size_gb or 0, routing.disk_gb or 0
    )


def begin_delete(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that a pod has accepted a request to delete a resource."""
    routings.change(tx, row_id, {"deleted_at": now, "updated_at": now})


def end_delete(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that a deleted resource still exists, long after the pod accepted its deletion."""
    routings.change(tx, row_id, {"deleted_at": None, "updated_at": now})


def miss(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that a pod does not show all resources that a request should have created."""
    routings.change(tx, row_id, {"deleted_at": now, "updated_at": now})


def touch(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that an open routing was checked. The next check begins with other routings."""
    routings.change(tx, row_id, {"updated_at": now})


def show_image(tx: Tx, row_id: int, image_id: str | None, now: datetime) -> None:
    """Record the image of a server, by the id of the image in this service."""
    routings.change(tx, row_id, {"image_id": image_id, "updated_at": now})
