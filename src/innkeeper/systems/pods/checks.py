"""Compare the routings of a pod with the resources that the pod reports, and repair routings.

A routing records which pod has a resource. A door is a service, such as this one, that forwards
requests to pods.

Always true: a repair changes only routings, never a pod. If the routing has changed since the
comparison, the repair changes nothing.

Several doors may use the same pod. So a repair adopts a resource only under two conditions. First,
this door knows the resource's project. Second, the resource has this door's mark, or is a volume
attached to a server of this door.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import Enum

from innkeeper.domain.door import MAY_TAKE, SERVER, TAKES, DoorAmounts, PodResource
from innkeeper.domain.errors import NotFound
from innkeeper.domain.listing import ImageSelection
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.store.queries.pods import bindings, routings
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import images
from innkeeper.systems.identity import projects
from innkeeper.systems.pods import boot_volumes
from innkeeper.systems.pods import routings as door_routings


class PodFault(Enum):
    """A kind of difference between the routings of a pod and the resources in the pod.

    ``LOST``: the pod does not have the resource of a routing. ``UNKNOWN``: the pod has a resource
    of this service without a routing. ``PROJECT``: the routing and the pod name different projects.
    ``AMOUNTS``: the routing and the pod have different amounts for the resource.
    """

    LOST = "lost"
    UNKNOWN = "unknown"
    PROJECT = "project"
    AMOUNTS = "amounts"


@dataclass(frozen=True, slots=True)
class PodDifference:
    """One difference, described in ``text``.

    A lost resource has only a ``routing``, and an unknown resource has only a ``resource``. If a
    project asked to take over a volume and now has the volume, ``note`` is the record of the
    project's request.
    """

    fault: PodFault
    pod: Pod
    kind: str
    uuid: str
    text: str
    routing: PodRouting | None = None
    resource: PodResource | None = None
    note: PodRouting | None = None


def compare(
    tx: Tx, pod: Pod, kind: str, told: Mapping[str, PodResource], settled_before: datetime
) -> list[PodDifference]:
    """Return the differences between the routings of a kind and the resources in a pod.

    ``told`` has the resources that the pod reports, by id. A routing is written before its resource
    is made. So the caller must first ask the pod, and then begin ``tx``, which reads the routings.
    In the other order, a resource that is made in between would seem to have no routing. If a
    routing was changed after ``settled_before``, its amounts are not compared.
    """
    known = routings.of_pod(tx, pod.id, kind)
    taken = {each.top_id.removeprefix(TAKES) for each in known if each.top_id.startswith(TAKES)}
    notes = {
        (each.top_id.removeprefix(MAY_TAKE).partition(":")[0], each.project_id): each
        for each in known
        if each.top_id.startswith(MAY_TAKE)
    }
    found: list[PodDifference] = []
    for each in known:
        # While another project takes over a volume, the pod may already show the new project.
        if each.bottom_id is not None and each.bottom_id not in taken:
            there = told.get(each.bottom_id)
            is_settled = each.updated_at < settled_before
            wanted = (each.bottom_id, "" if there is None else there.project_id)
            found += [
                replace(one, note=notes.get(wanted))
                for one in _of_known(pod, each, each.bottom_id, there, is_settled=is_settled)
            ]
    ids = {each.bottom_id for each in known}
    begun = {each.top_id for each in known if each.bottom_id is None}
    for uuid, resource in told.items():
        if uuid in ids or resource.mark in begun:
            continue
        if (uuid, resource.project_id) in notes or _is_of_door(tx, pod, resource):
            whose = f"{kind} {uuid} of project {resource.project_id}"
            text = f"pod {pod.pod_name} has {whose}, which has no routing here"
            found.append(PodDifference(PodFault.UNKNOWN, pod, kind, uuid, text, resource=resource))
    return found


def _is_of_door(tx: Tx, pod: Pod, resource: PodResource) -> bool:
    """Return True if a resource has the door's mark, or is attached to the door's server.

    The door is this service, which forwards requests to pods.
    """
    if resource.mark is not None:
        return True
    return any(
        (each.pod_id, each.project_id) == (pod.id, resource.project_id)
        for server_uuid in resource.servers
        # Volumes that a pod makes for a server are recorded later, together with the server.
        if not routings.open_with_server(tx, server_uuid)
        for each in routings.of_resource(tx, server_uuid, SERVER)
    )


def _of_known(
    pod: Pod, routing: PodRouting, uuid: str, there: PodResource | None, *, is_settled: bool
) -> Iterator[PodDifference]:
    kind = routing.resource_type
    about = f"{kind} {uuid} in pod {pod.pod_name}"
    if there is None:
        text = f"pod {pod.pod_name} does not have {kind} {uuid} of project {routing.project_id}"
        yield PodDifference(PodFault.LOST, pod, kind, uuid, text, routing)
        return
    if there.project_id != routing.project_id:
        text = f"{about} has project {routing.project_id} here, but {there.project_id} in the pod"
        yield PodDifference(PodFault.PROJECT, pod, kind, uuid, text, routing, there)
    # A routing that was made by hand has no amounts to compare.
    is_final = is_settled and routing.changing_at is None and routing.number is not None
    counted = door_routings.amounts_of(routing)
    if is_final and there.amounts is not None and there.amounts != counted:
        text = f"{about} counts with {_words(counted)}, but has {_words(there.amounts)}"
        yield PodDifference(PodFault.AMOUNTS, pod, kind, uuid, text, routing, there)


def count(tx: Tx, pod: Pod) -> int:
    """Return the number of resources that a pod has confirmed."""
    return routings.confirmed(tx, pod.id)


def repair(tx: Tx, found: PodDifference, now: datetime) -> str | None:
    """Repair a difference. Return a text about the repair, or ``None`` if nothing was changed."""
    about, there = f"{found.kind} {found.uuid}", found.resource
    if found.routing is None:
        assert there is not None, "a difference without a routing has a resource"
        return _adopt(tx, found.pod, there, now)
    row = routings.by_id(tx, found.routing.id)
    if row is None or _compared(row) != _compared(found.routing):
        return None
    if there is None:
        door_routings.lose(tx, row, now)
        return f"{about} is forgotten"
    if found.fault is PodFault.PROJECT:
        if not _is_known(tx, there.project_id):
            return None
        # The user in the routing belongs to the volume's former project.
        user_id = None if found.note is None else found.note.user_id
        values = {"project_id": there.project_id, "user_id": user_id, "updated_at": now}
        routings.change(tx, row.id, values)
        if found.note is not None:
            routings.remove(tx, found.note.id)
        return f"{about} is of project {there.project_id}"
    assert there.amounts is not None, "they were compared"
    door_routings.recount(tx, row, there.amounts, now)
    return f"{about} counts with {_words(there.amounts)}"


def _adopt(tx: Tx, pod: Pod, there: PodResource, now: datetime) -> str | None:
    is_routed = routings.of_resource(tx, there.uuid, there.kind)
    is_begun = there.mark is not None and routings.of_resource(tx, there.mark, there.kind)
    if is_routed or is_begun or not _is_known(tx, there.project_id):
        return None
    amounts = there.amounts or DoorAmounts()
    made = PodRouting(
        0,
        there.uuid,
        there.uuid,
        pod.id,
        there.project_id,
        there.kind,
        now,
        now,
        image_id=_image_named(tx, there.image_name, there.project_id),
        number=1,
        type_uuid=door_routings.type_named(tx, there.volume_type),
        server_uuid=next(iter(there.servers), None),
        **asdict(amounts),
    )
    routings.add(tx, made)
    if there.kind == SERVER:
        boot_volumes.expect(tx, made, now)
    return f"{there.kind} {there.uuid} of project {there.project_id} is remembered"


def _image_named(tx: Tx, name: str | None, project_id: str) -> str | None:
    """Return the id of the only image with this name that a project may see, or ``None``."""
    if name is None:
        return None
    wanted = ImageSelection({"name": (name,)}, viewer=project_id, with_community=True)
    found = images.page(tx, wanted, None, 2)
    return found[0].id if len(found) == 1 else None


def _is_known(tx: Tx, project_id: str) -> bool:
    """Return True if this service has the project, or has bindings or routings of the project."""
    try:
        projects.get(tx, project_id)
    except NotFound:
        return bindings.has_any(tx, project_id) or routings.has_any(tx, project_id)
    return True


def _compared(routing: PodRouting) -> tuple[object, ...]:
    return routing.bottom_id, routing.pod_id, routing.project_id, door_routings.amounts_of(routing)


def _words(amounts: DoorAmounts) -> str:
    if amounts.size_gb:
        return f"{amounts.size_gb} GB"
    return f"{amounts.vcpus} vcpus, {amounts.memory_mb} MB and {amounts.disk_gb} GB of disk"
