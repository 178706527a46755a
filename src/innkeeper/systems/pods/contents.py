"""List the resources that are still in a pod, by project."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from innkeeper.domain.pods import PodContents
from innkeeper.store.queries.pods import contents, pods
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods as pod_rules


@dataclass(frozen=True, slots=True)
class DrainedPod:
    """The resources in a pod: per project for one page of projects, and in total.

    ``bound`` has the projects of the page that are bound to the pod.
    """

    projects: Sequence[PodContents]
    bound: Collection[str]
    total: PodContents
    project_count: int
    binding_count: int


def of_pod(tx: Tx, uuid: str, *, after: str, limit: int) -> DrainedPod:
    """Return the resources in a pod, according to the routings. Raises :class:`NotFound`."""
    pod = pod_rules.get(tx, uuid)
    rows = contents.by_project(tx, pod.id, after=after, limit=limit)
    bound = contents.bound_projects(tx, pod.id, [each.project_id for each in rows])
    bindings, _ = pods.counts(tx, pod.id)
    total, count = contents.total(tx, pod.id), contents.project_count(tx, pod.id)
    return DrainedPod(rows, bound, total, count, bindings)
