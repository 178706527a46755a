"""Check the invariants of bindings and routings in the database.

A binding assigns a project to a pod. A routing records which pod has a resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.pods import EndReason, PodBinding, active_key, group_key
from innkeeper.store import periodic
from innkeeper.store.queries.pods import audit
from innkeeper.store.transactions import Tx

ROOM = "pods"
_invariant = partial(Invariant, ROOM)
_FROM_BACKUP = "The pod tables were edited by hand. Restore them from a backup."
_BY_HAND = "End the binding by hand. The next request of the project then chooses a pod."
ONE_ACTIVE = _invariant(
    "two-active-bindings",
    "for a project, group of pods and availability zone, at most one binding is active",
    "End all of these active bindings but one by hand.",
)
KEYS = _invariant(
    "wrong-binding-key",
    "the keys and the number of a binding match its project, group of pods and availability zone",
    _FROM_BACKUP,
)
OVERLAP = _invariant(
    "overlapping-bindings",
    "the bindings for a project, group of pods and availability zone do not overlap in time",
    _FROM_BACKUP,
)
GAP = _invariant(
    "gap-between-bindings",
    "a binding that moved to another pod ends when the next binding starts",
    _FROM_BACKUP,
)
NO_POD = _invariant("binding-without-pod", "the pod of an active binding exists", _BY_HAND)
LOST_ROUTING = _invariant(
    "routing-without-pod",
    "the pod of a routing exists",
    "Find out where the resource lives, and delete the routing.",
)
UNDECIDED = _invariant(
    "undecided-create",
    "within an hour, the service finds out if a pod has made a requested server or volume",
    "Check that the pod answers. The service then finds out if the pod has made the resource.",
)
INVARIANTS = (ONE_ACTIVE, KEYS, OVERLAP, GAP, NO_POD, LOST_ROUTING, UNDECIDED)
SETTLE_TASK = "pod_settles"
"""The periodic task that finds out which requested resources the pods have made."""
DECIDED_WITHIN = timedelta(hours=1)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about bindings and routings."""
    for of_group, rows in groupby(audit.bindings(tx), key=lambda row: row[1]):
        found = list(rows)
        yield from _keys(of_group, found)
        yield from _history([each for each, _, _ in found])
    for (uuid,) in audit.bindings_without_pod(tx):
        yield NO_POD.broken(uuid, f"the pod of binding {uuid} does not exist")
    for row_id, resource_type, top_id in audit.routings_without_pod(tx):
        yield LOST_ROUTING.broken(row_id, f"the pod of {resource_type} {top_id} does not exist")
    # The hour ends at the service's last check, because a stopped service checks nothing.
    last = periodic.last_turn(tx, SETTLE_TASK)
    if last is None:
        return
    for row_id, resource_type, project_id, pod_name in audit.begun_before(
        tx, last - DECIDED_WITHIN
    ):
        whose = f"a {resource_type} of project {project_id}"
        yield UNDECIDED.broken(
            row_id, f"the service does not know whether pod {pod_name} has made {whose}"
        )


def _keys(of_group: str, rows: Sequence[tuple[PodBinding, str, str | None]]) -> Iterator[Finding]:
    for number, (each, _, of_active) in enumerate(rows, start=1):
        key = active_key(each.project_id, each.group_name, each.az_name)
        expected = key if each.is_active else None
        is_numbered = each.sequence == number
        if group_key(each.project_id, each.group_name) != of_group or of_active != expected:
            yield KEYS.broken(each.uuid, f"binding {each.uuid} has a wrong key")
        elif not is_numbered:
            text = f"binding {each.uuid} has the number {each.sequence}, not {number}"
            yield KEYS.broken(each.uuid, text)


def _history(rows: Sequence[PodBinding]) -> Iterator[Finding]:
    last: dict[str, PodBinding] = {}
    for each in rows:
        before = last.get(each.az_name)
        if before is not None and before.ended_at is None:
            about = f"bindings {before.uuid} and {each.uuid} of project {each.project_id}"
            yield ONE_ACTIVE.broken(
                each.uuid, f"{about} are both active, or end in the wrong order"
            )
        elif before is not None and before.ended_at and each.started_at < before.ended_at:
            text = f"binding {each.uuid} starts before binding {before.uuid} ends"
            yield OVERLAP.broken(each.uuid, text)
        if each.ended_at is not None and each.ended_at < each.started_at:
            yield OVERLAP.broken(each.uuid, f"binding {each.uuid} ends before it starts")
        last[each.az_name] = each
    later: set[datetime] = set()
    for each in reversed(rows):
        has_next = each.end_reason in (EndReason.MOVED, EndReason.REPLACED)
        if has_next and each.ended_at not in later:
            yield GAP.broken(each.uuid, f"no binding starts when binding {each.uuid} ends")
        later.add(each.started_at)
