"""Dry runs: what would move where if pods or the policy changed. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.pods import Pod, PodBinding, PodRequest
from innkeeper.scheduling import pod_choosing
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.store.queries.pods import bindings, pods
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods as pod_rules
from innkeeper.systems.pods.bindings import table_of


@dataclass(frozen=True, slots=True)
class BindingMove:
    """An active binding whose next request would not stay in its pod.

    ``target`` is ``None`` if no pod would take the work. ``reason`` says why it would not stay.
    """

    binding: PodBinding
    source: Pod
    target: Pod | None
    reason: str


@dataclass(frozen=True, slots=True)
class PodDryRun:
    """The moves that would follow, and the number of bindings that would stay."""

    moves: list[BindingMove]
    staying: int


def dry_run(tx: Tx, policy: PodPolicy, changes: Mapping[str, Mapping[str, Any]]) -> PodDryRun:
    """Return what would move if these fields of pods changed, by the pods' ids.

    Raises :class:`NotFound` for an unknown pod, and :class:`Invalid` for a wrong value.
    """
    changed = {
        uuid: pod_rules.changed(pod_rules.get(tx, uuid), values) for uuid, values in changes.items()
    }
    table = table_of(tx, changed)
    by_id = {each.id: each for each in table.pods}
    moves: list[BindingMove] = []
    staying = 0
    for binding, request in _requests(tx):
        source = by_id[request.bound[0]]
        target = pod_choosing.choose(policy, table, request)
        if target is source:
            staying += 1
            continue
        verdicts = pod_choosing.explain(policy, table, request)
        reason = next(each.reason for each in verdicts if each.pod is source)
        moves.append(BindingMove(binding, source, target, reason or ""))
    return PodDryRun(moves, staying)


def _requests(tx: Tx) -> Iterator[tuple[PodBinding, PodRequest]]:
    """Yield each active binding with a request that names no amounts."""
    known = {each.id for each in pods.every(tx)}
    for each in bindings.every_active(tx):
        if each.pod_id in known and each.pod_id is not None:
            request = PodRequest(
                each.project_id, each.group_name, each.az_name, bound=(each.pod_id,)
            )
            yield each, request
