"""Dry runs: which projects would move to another pod after a change of pods or of the policy.

Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.pod_usage import KindUsage, Usage
from innkeeper.domain.pods import Pod, PodBinding, PodContents, PodRequest, check_numbers
from innkeeper.scheduling import pod_choosing
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.snapshot.pods import PodTable
from innkeeper.store.queries.pods import bindings, contents, pods
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods as pod_rules
from innkeeper.systems.pods.bindings import table_of

NEW_PROJECT = ""
"""A project without bindings. No project has this id."""


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod that does not exist yet, with its capacity by kind.

    If a kind has no capacity, the pod is never full for this kind.
    """

    pod: Pod
    totals: Mapping[str, float]

    def usage(self) -> Usage:
        """Return the usage of an empty pod."""
        return {kind: KindUsage(total, 0.0) for kind, total in self.totals.items()}


@dataclass(frozen=True, slots=True)
class BindingMove:
    """An active binding that the project's next request would not use any more.

    ``target`` is the pod that the project would get, or ``None`` if no pod would take the request.
    ``reason`` says why the present pod would refuse the request. ``left`` has the project's
    resources in the present pod, which would stay there.
    """

    binding: PodBinding
    source: Pod
    target: Pod | None
    reason: str
    left: PodContents | None


@dataclass(frozen=True, slots=True)
class NewProjects:
    """The pod that a new project would get in a group and zone, before and after the change."""

    group: str
    az_name: str
    before: Pod | None
    after: Pod | None


@dataclass(frozen=True, slots=True)
class PodDryRun:
    """The effects of a change.

    ``moves`` are the active bindings that would move. ``staying`` is the number of active bindings
    that would not move. ``before`` and ``after`` are the numbers of active bindings by pod.
    """

    moves: list[BindingMove]
    staying: int
    pods: Sequence[Pod]
    before: Mapping[int, int]
    after: Mapping[int, int]
    new_projects: list[NewProjects]


def dry_run(
    tx: Tx,
    policies: tuple[PodPolicy, PodPolicy],
    changes: Mapping[str, Mapping[str, Any]],
    added: Sequence[PlannedPod] = (),
) -> PodDryRun:
    """Return the effects of a change of the policy, of pods' fields, or of added pods.

    ``policies`` are the policies before and after the change. ``changes`` has the new fields of
    pods by the pods' ids. Raises :class:`NotFound` for an unknown pod. Raises
    :class:`AlreadyExists` if an ``added`` pod has a name in use. Raises :class:`Invalid` for a
    wrong value.
    """
    changed = {
        uuid: pod_rules.changed(pod_rules.get(tx, uuid), values) for uuid, values in changes.items()
    }
    table = table_of(tx, changed, _numbered(tx, added))
    by_id = {each.id: each for each in table.pods}
    before, after, moves = Counter[int](), Counter[int](), list[BindingMove]()
    left: dict[int, Mapping[str, PodContents]] = {}
    for binding, request in _requests(tx):
        source = by_id[request.bound[0]]
        before[source.id] += 1
        target = pod_choosing.choose(policies[1], table, request)
        if target is not None:
            after[target.id] += 1
        if target is source:
            continue
        if source.id not in left:
            rows = contents.by_project(tx, source.id)
            left[source.id] = {each.project_id: each for each in rows}
        verdicts = pod_choosing.explain(policies[1], table, request)
        reason = next(each.reason for each in verdicts if each.pod is source)
        there = left[source.id].get(binding.project_id)
        moves.append(BindingMove(binding, source, target, reason or "", there))
    new = list(_new_projects(policies, table_of(tx), table))
    return PodDryRun(moves, before.total() - len(moves), table.pods, before, after, new)


def _numbered(tx: Tx, added: Sequence[PlannedPod]) -> list[tuple[Pod, Usage]]:
    """Check pods that would be added, and give them unused row ids."""
    known = pods.every(tx)
    names = {each.pod_name for each in known}
    last = max((each.id for each in known), default=0)
    found: list[tuple[Pod, Usage]] = []
    for number, each in enumerate(added, start=1):
        name = each.pod.pod_name
        if name in names:
            raise AlreadyExists(f"A pod with the name {name} exists already.")
        names.add(name)
        check_numbers(each.pod)
        found.append((replace(each.pod, id=last + number), each.usage()))
    return found


def _new_projects(
    policies: tuple[PodPolicy, PodPolicy], before: PodTable, after: PodTable
) -> Iterator[NewProjects]:
    """For each group and zone that has a pod, yield the pods that a new project would get."""
    for group, az_name in sorted({(each.group, each.az_name) for each in after.pods}):
        request = PodRequest(NEW_PROJECT, group, az_name)
        first, then = (
            pod_choosing.choose(policy, table, request)
            for policy, table in zip(policies, (before, after), strict=True)
        )
        yield NewProjects(group, az_name, first, then)


def _requests(tx: Tx) -> Iterator[tuple[PodBinding, PodRequest]]:
    """Yield each active binding, and a new request of its project. The request has no amounts."""
    known = {each.id for each in pods.every(tx)}
    for each in bindings.every_active(tx):
        if each.pod_id in known and each.pod_id is not None:
            request = PodRequest(
                each.project_id, each.group_name, each.az_name, bound=(each.pod_id,)
            )
            yield each, request
