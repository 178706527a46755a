"""Server groups on pods: the pod of a group's servers, and the copy of the group in the pod.

Always true: all servers of a group are in one pod, because a policy about hosts means nothing
across pods. The copy is made only once per pod, because a unique row (the group's routing) is
written first.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.door import GROUP
from innkeeper.domain.errors import Conflict, NotFound, QuotaExceeded
from innkeeper.domain.pods import PodRouting
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import groups

# Queries that are re-exported unchanged.
members = routings.members
unused = routings.unused_groups
APART = "All servers of a server group must be in one pod. This group has servers in another pod."


class GroupElsewhere(Conflict):
    """The servers of the group are in another pod, or are being made there."""

    def __init__(self) -> None:
        super().__init__(APART)


def pod_of(tx: Tx, group_uuid: str) -> int | None:
    """Return the pod of a group's servers, or ``None`` for a group without servers."""
    return next((each.pod_id for each in routings.of_group(tx, group_uuid)), None)


def may_leave(tx: Tx, group_uuid: str) -> bool:
    """Return True if no pod has confirmed a server of the group.

    The group may then still get another pod.
    """
    return all(each.bottom_id is None for each in routings.of_group(tx, group_uuid))


def demand_room(tx: Tx, wanted: PodRouting, members_max: int) -> None:
    """Check that new servers can join their server group.

    Raises :class:`GroupElsewhere` if the group is in another pod. Raises :class:`QuotaExceeded` if
    the group would have too many servers.
    """
    if wanted.server_group_uuid is None:
        return
    found = routings.of_group(tx, wanted.server_group_uuid)
    if any(each.pod_id != wanted.pod_id for each in found):
        raise GroupElsewhere
    number = sum(each.number or 0 for each in (*found, wanted))
    if members_max != UNLIMITED and number > members_max:
        raise QuotaExceeded(groups.TOO_MANY_MEMBERS)


def begin(
    tx: Tx, group_uuid: str, project_id: str, pod_id: int, *, now: datetime, stale: datetime
) -> tuple[PodRouting, bool]:
    """Return the routing of a group in a pod, and True if the caller must make the group there.

    A routing is the row that records a group's pod. The caller must make the group if the routing
    is new. The caller must also make it if the routing is incomplete and was last changed before
    ``stale``. In the latter case, the returned routing has an ``updated_at`` after its
    ``created_at``.
    """
    known = routings.found(tx, group_uuid, pod_id, GROUP)
    is_ours = known is None or (known.bottom_id is None and known.updated_at < stale)
    if known is None:
        wanted = PodRouting(0, group_uuid, None, pod_id, project_id, GROUP, now, now)
        routings.add(tx, wanted)
    elif known.updated_at < stale:
        # The new time protects this group from removal, because it is in use.
        routings.change(tx, known.id, {"updated_at": now})
    found = routings.found(tx, group_uuid, pod_id, GROUP)
    assert found is not None, "it was read or inserted"
    return found, is_ours


def confirm(tx: Tx, row_id: int, bottom_id: str, now: datetime) -> None:
    """Record the id of a group in a pod."""
    routings.change(tx, row_id, {"bottom_id": bottom_id, "updated_at": now})


def lose(tx: Tx, seen: PodRouting, now: datetime) -> PodRouting | None:
    """Take the id from a group's routing, because the pod does not have the group any more.

    Return the changed routing. The caller must then make the group again. Return ``None`` if the
    routing has another id by now, or none, because another request makes the group.
    """
    found = routings.by_id(tx, seen.id)
    if found is None or found.bottom_id is None or found.bottom_id != seen.bottom_id:
        return None
    return _without_id(tx, found, now)


def begin_removal(tx: Tx, seen: PodRouting, now: datetime) -> PodRouting | None:
    """Take the id from a group's routing before the group is removed from the pod.

    A create that needs the group then waits, or makes the group again. Return the changed routing,
    or ``None`` if the group has been used since it was ``seen``.
    """
    found = routings.by_id(tx, seen.id)
    if found is None or found.updated_at != seen.updated_at:
        return None
    has_servers = any(each.pod_id == found.pod_id for each in routings.of_group(tx, found.top_id))
    if has_servers and _is_known(tx, found.top_id):
        return None
    return _without_id(tx, found, now)


def end_removal(tx: Tx, begun: PodRouting) -> None:
    """Forget a removed group, unless another request has begun to make it again."""
    if routings.by_id(tx, begun.id) == begun:
        routings.remove(tx, begun.id)


def _is_known(tx: Tx, group_uuid: str) -> bool:
    """Return whether this service still has the group."""
    try:
        groups.get(tx, group_uuid)
    except NotFound:
        return False
    return True


def _without_id(tx: Tx, routing: PodRouting, now: datetime) -> PodRouting:
    routings.change(tx, routing.id, {"bottom_id": None, "updated_at": now})
    return replace(routing, bottom_id=None, updated_at=now)
