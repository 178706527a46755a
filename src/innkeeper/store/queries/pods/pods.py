"""Database access for pods, and for the results of polling pods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.door import MAY_TAKE
from innkeeper.domain.pods import Pod, PodHealth
from innkeeper.store import records
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.pods import pod_bindings, pod_measurements, pod_routings, pods
from innkeeper.store.transactions import Tx

_OWN = records.columns(pods, Pod, but=("health",))
_HEALTH = records.columns(pods, PodHealth)
_PODS = sa.select(*_OWN, *_HEALTH).order_by(pods.c.id)
_EVERY = Prepared(_PODS)
_BY_ID = Prepared(_PODS.where(pods.c.id == sa.bindparam("row_id")))


def _pod(row: Sequence[Any]) -> Pod:
    return Pod(*[*row[: len(_OWN)], PodHealth(*row[len(_OWN) :])])


def add(tx: Tx, pod: Pod) -> None:
    """Insert a pod."""
    values = records.values(pod, but=("id", "health"))
    tx.execute(pods.insert(), {**values, **records.values(pod.health)})


def change(tx: Tx, uuid: str, **values: Any) -> bool:
    """Set columns of a pod; return whether it exists."""
    return tx.execute(pods.update().where(pods.c.uuid == uuid), values).rowcount > 0


def record(tx: Tx, uuid: str, health: PodHealth) -> None:
    """Set the columns that show the result of a poll."""
    change(tx, uuid, **records.values(health))


def remove(tx: Tx, pod: Pod) -> None:
    """Delete a pod and its measurements. Ended bindings are kept, without the pod's row id."""
    ended = pod_bindings.update().where(pod_bindings.c.pod_id == pod.id)
    tx.execute(ended.where(pod_bindings.c.ended_at.is_not(None)), {"pod_id": None})
    tx.execute(pod_measurements.delete().where(pod_measurements.c.pod_id == pod.id))
    tx.execute(pods.delete().where(pods.c.id == pod.id))


def by_uuid(tx: Tx, uuid: str) -> Pod | None:
    """Return the pod with this uuid."""
    row = tx.execute(_PODS.where(pods.c.uuid == uuid)).first()
    return None if row is None else _pod(row)


def by_id(tx: Tx, row_id: int) -> Pod | None:
    """Return the pod with this row id."""
    return next((_pod(row) for row in _BY_ID.rows(tx, {"row_id": row_id})), None)


def by_ids(tx: Tx, ids: Collection[int]) -> Mapping[int, Pod]:
    """Return the pods with these row ids. All pods are read, because there are few."""
    return {each.id: each for each in every(tx) if each.id in ids}


def named(tx: Tx, pod_name: str) -> bool:
    """Return whether a pod has this name.

    On some databases, the comparison ignores case.
    """
    return tx.execute(sa.select(pods.c.id).where(pods.c.pod_name == pod_name)).first() is not None


def every(tx: Tx) -> list[Pod]:
    """Return all pods, in the order in which they were added."""
    return [_pod(row) for row in _EVERY.rows(tx, {})]


def counts(tx: Tx, pod_id: int) -> tuple[int, int]:
    """Return the number of active bindings to a pod, and the number of resources in it."""
    active = sa.select(sa.func.count()).where(
        pod_bindings.c.pod_id == pod_id, pod_bindings.c.ended_at.is_(None)
    )
    routed = sa.select(sa.func.count()).where(
        pod_routings.c.pod_id == pod_id, ~pod_routings.c.top_id.startswith(MAY_TAKE)
    )
    return tx.execute(active).scalar_one(), tx.execute(routed).scalar_one()
