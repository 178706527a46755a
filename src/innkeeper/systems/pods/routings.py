"""Routings: in which pod each resource lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.door import SERVER, DoorAmounts, DoorLimits
from innkeeper.domain.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    QuotaExceeded,
    VolumeQuotaExceeded,
)
from innkeeper.domain.pods import PodRouting
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Tx

# Queries that are re-exported unchanged.
page = routings.page
homes = routings.homes
pods_of = routings.pods_of
open_ones = routings.open_ones
used = routings.used
unchecked = routings.unchecked


def create(tx: Tx, wanted: PodRouting) -> PodRouting:
    """Add a routing. Raises :class:`AlreadyExists` if the pod has one for the resource."""
    if routings.found(tx, wanted.top_id, wanted.pod_id, wanted.resource_type) is not None:
        raise AlreadyExists(
            f"A routing of the {wanted.resource_type} {wanted.top_id} to this pod exists already."
        )
    routings.add(tx, wanted)
    made = routings.found(tx, wanted.top_id, wanted.pod_id, wanted.resource_type)
    assert made is not None, "it was just inserted"
    return made


def delete(tx: Tx, row_id: int) -> None:
    """Forget where a resource lives. The resource itself stays. Raises :class:`NotFound`."""
    get(tx, row_id)
    routings.remove(tx, row_id)


def get(tx: Tx, row_id: int) -> PodRouting:
    """Return a routing. Raises :class:`NotFound`."""
    found = routings.by_id(tx, row_id)
    if found is None:
        raise NotFound(f"Routing {row_id} could not be found.")
    return found


def place_of(tx: Tx, top_id: str, resource_type: str) -> PodRouting:
    """Return the routing of a resource that a pod has confirmed. Raises :class:`NotFound`."""
    for each in routings.of_resource(tx, top_id, resource_type):
        if each.bottom_id is not None:
            return each
    raise NotFound(f"{resource_type.capitalize()} {top_id} could not be found.")


def begin(tx: Tx, wanted: PodRouting, limits: DoorLimits) -> PodRouting:
    """Record a create before a pod is asked. ``top_id`` is its mark.

    Raises :class:`QuotaExceeded`.
    """
    number = wanted.number or 0
    one = DoorAmounts(wanted.vcpus or 0, wanted.memory_mb or 0, wanted.size_gb or 0)
    demand_room(tx, wanted, number, one, limits)
    # No other routing has the mark, so nothing is looked up.
    return replace(wanted, id=routings.add(tx, wanted))


def demand_room(
    tx: Tx, routing: PodRouting, number: int, more: DoorAmounts, limits: DoorLimits
) -> None:
    """Raise :class:`QuotaExceeded` if this number with these amounts would exceed a quota."""
    used = routings.used(tx, routing.project_id, routing.resource_type)
    times = max(number, 1)
    if routing.resource_type == SERVER:
        _demand("instances", number, used[0], limits.number)
        _demand("cores", more.vcpus * times, used[1], limits.vcpus)
        _demand("ram", more.memory_mb * times, used[2], limits.memory_mb)
        return
    if limits.number != UNLIMITED and number and used[0] + number > limits.number:
        raise VolumeQuotaExceeded(
            f"VolumeLimitExceeded: Maximum number of volumes allowed ({limits.number}) exceeded "
            "for quota 'volumes'."
        )
    if limits.size_gb != UNLIMITED and used[3] + more.size_gb * times > limits.size_gb:
        raise VolumeQuotaExceeded(
            "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed "
            f"gigabytes quota. Requested {more.size_gb}G, quota is {limits.size_gb}G and "
            f"{used[3]}G has been consumed."
        )


def _demand(name: str, requested: int, used: int, limit: int) -> None:
    if limit != UNLIMITED and requested > 0 and used + requested > limit:
        raise QuotaExceeded(
            f"Quota exceeded for {name}: Requested {requested}, but already used {used} of "
            f"{limit} {name}"
        )


def settle(tx: Tx, begun: PodRouting, bottom_ids: Sequence[str], now: datetime) -> None:
    """Make the routing of a create the one, or the ones, of what the pod has made.

    Raises :class:`Conflict` if another pod has a resource with one of the ids. A second call does
    nothing.
    """
    new = [each for each in bottom_ids if not _is_known(tx, begun, each)]
    # The usual case is one resource, and one statement.
    if len(new) == 1 and routings.confirm(tx, begun.id, new[0], now):
        return
    found = routings.by_id(tx, begun.id)
    if found is None or found.bottom_id is not None:
        return
    routings.remove(tx, begun.id)
    for bottom_id in new:
        made = replace(begun, top_id=bottom_id, bottom_id=bottom_id, number=1, updated_at=now)
        routings.add(tx, made)


def _is_known(tx: Tx, begun: PodRouting, bottom_id: str) -> bool:
    """Return whether a resource has a routing to the pod of a create."""
    known = routings.of_resource(tx, bottom_id, begun.resource_type)
    if any(each.pod_id != begun.pod_id for each in known):
        raise Conflict(f"Two pods have a {begun.resource_type} with the id {bottom_id}.")
    return bool(known)


def forget(tx: Tx, row_id: int) -> None:
    """Forget a resource that its pod surely does not have. It counts no more."""
    routings.remove(tx, row_id)


def recount(tx: Tx, row_id: int, amounts: DoorAmounts, now: datetime) -> None:
    """Record that a resource counts with other amounts."""
    fields = {
        "vcpus": amounts.vcpus,
        "memory_mb": amounts.memory_mb,
        "size_gb": amounts.size_gb,
        "updated_at": now,
    }
    routings.change(tx, row_id, fields)


def begin_delete(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that a pod accepted to delete a resource."""
    routings.change(tx, row_id, {"deleted_at": now, "updated_at": now})


def end_delete(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that a pod still has a resource that it accepted to delete long ago."""
    routings.change(tx, row_id, {"deleted_at": None, "updated_at": now})


def touch(tx: Tx, row_id: int, now: datetime) -> None:
    """Record that an open routing was looked at. Others are looked at first the next time."""
    routings.change(tx, row_id, {"updated_at": now})


def show_image(tx: Tx, row_id: int, image_id: str | None, now: datetime) -> None:
    """Record which image at the door a server has."""
    routings.change(tx, row_id, {"image_id": image_id, "updated_at": now})
