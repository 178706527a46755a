"""Plants defects of pods, bindings and routings, in addition to those of the other rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from innkeeper.domain.pods import PodRequest, PodRouting
from innkeeper.store.queries.pods import routings
from innkeeper.store.tables.ordering import periodic_tasks
from innkeeper.store.tables.pods import pod_bindings
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import bindings
from innkeeper.systems.pods.audit import SETTLE_TASK
from tests.support.clouds import NOW, Numbers
from tests.support.foreign_keys import loosen
from tests.support.pod_rows import POLICY, add_pod

PROJECT = "project"
Plant = Callable[[Tx, Any], object]
EARLIER = timedelta(hours=1)


def _moved(tx: Tx) -> tuple[str, str]:
    """Bind a project, and move it. Return the ids of both bindings."""
    add_pod(tx, 1)
    second = add_pod(tx, 2)
    ids = Numbers()
    first, _ = bindings.bind(tx, POLICY, PodRequest(PROJECT), ids=ids, now=NOW)
    later, _ = bindings.bind_to(tx, PROJECT, second, ids=ids, now=NOW)
    return first.uuid, later.uuid


def _binding(which: int, **values: Any) -> Plant:
    def plant(tx: Tx, _: Any) -> None:
        uuid = _moved(tx)[which]
        tx.execute(pod_bindings.update().where(pod_bindings.c.uuid == uuid).values(**values))

    return plant


def _routing(tx: Tx, _: Any) -> None:
    loosen(tx)
    routings.add(tx, PodRouting(0, "top", "top", 99, PROJECT, "server", NOW, NOW))


def _undecided(tx: Tx, _: Any) -> None:
    pod = add_pod(tx, 1)
    routings.add(tx, PodRouting(0, "mark", None, pod.id, PROJECT, "server", NOW, NOW, number=1))
    later = NOW + 2 * EARLIER
    tx.execute(periodic_tasks.insert().values(name=SETTLE_TASK, last_at=later))


PLANTS: Mapping[str, Plant] = {
    "two-active-bindings": _binding(0, ended_at=None, end_reason=None),
    "wrong-binding-key": _binding(1, sequence=7),
    "overlapping-bindings": _binding(1, started_at=NOW - EARLIER),
    "gap-between-bindings": _binding(1, started_at=NOW + EARLIER),
    "binding-without-pod": _binding(1, pod_id=None),
    "routing-without-pod": _routing,
    "undecided-create": _undecided,
}
