"""Database access for routings: in which pod a resource lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.pods import PodHome, PodRouting
from innkeeper.store import records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.pods import pod_routings
from innkeeper.store.transactions import Tx

_C = pod_routings.c
_ROWS = sa.select(*records.columns(pod_routings, PodRouting))
_HOMES = PreparedForIds(
    sa.select(_C.top_id, _C.resource_type, *records.columns(pod_routings, PodHome)).where(
        _C.top_id.in_(IDS), _C.bottom_id.is_not(None)
    )
)
_IS_OF = sa.and_(
    _C.top_id == sa.bindparam("wanted_id"), _C.resource_type == sa.bindparam("wanted_type")
)
# These are a part of each request for a server or volume.
_ADD = Prepared(pod_routings.insert())
_OF_RESOURCE = Prepared(_ROWS.where(_IS_OF))
_IN_POD = Prepared(_ROWS.where(_IS_OF, _C.pod_id == sa.bindparam("wanted_pod")))
_BY_ID = Prepared(_ROWS.where(_C.id == sa.bindparam("row_id")))
NAMED = ("top_id", "bottom_id", "number", "updated_at")
_CONFIRM = Prepared(
    pod_routings.update()
    .where(_C.id == sa.bindparam("row_id"), _C.bottom_id.is_(None))
    .values({name: sa.bindparam(f"new_{name}") for name in NAMED})
)
# SELECT SUM(number), SUM(vcpus * number), ... over the resources of a project. Sums skip nulls.
_USED = Prepared(
    sa.select(
        sa.func.sum(_C.number),
        *(sa.func.sum(each * _C.number) for each in (_C.vcpus, _C.memory_mb, _C.size_gb)),
    ).where(
        _C.project_id == sa.bindparam("project"), _C.resource_type == sa.bindparam("wanted_type")
    )
)


def add(tx: Tx, routing: PodRouting) -> int:
    """Insert a routing. Return its row id."""
    _ADD.run(tx, [records.values(routing, but=("id",))])
    made = found(tx, routing.top_id, routing.pod_id, routing.resource_type)
    assert made is not None, "it was just inserted"
    return made.id


def found(tx: Tx, top_id: str, pod_id: int, resource_type: str) -> PodRouting | None:
    """Return the routing of a resource to a pod."""
    wanted = {"wanted_id": top_id, "wanted_type": resource_type, "wanted_pod": pod_id}
    return next((PodRouting(*row) for row in _IN_POD.rows(tx, wanted)), None)


def remove(tx: Tx, row_id: int) -> None:
    """Delete a routing."""
    tx.execute(pod_routings.delete().where(_C.id == row_id))


def by_id(tx: Tx, row_id: int) -> PodRouting | None:
    """Return a routing."""
    return next((PodRouting(*row) for row in _BY_ID.rows(tx, {"row_id": row_id})), None)


def page(
    tx: Tx, wanted: Mapping[str, object], *, before: int | None, limit: int
) -> Sequence[PodRouting]:
    """Return routings whose columns have the ``wanted`` values, newest first."""
    query: sa.Select[Any] = _ROWS.order_by(_C.id.desc()).limit(limit)
    for name, value in wanted.items():
        query = query.where(_C[name] == value)
    if before is not None:
        query = query.where(_C.id < before)
    return [PodRouting(*row) for row in tx.execute(query)]


def of_resource(tx: Tx, top_id: str, resource_type: str) -> Sequence[PodRouting]:
    """Return the routings of a resource, in any pod."""
    wanted = {"wanted_id": top_id, "wanted_type": resource_type}
    return [PodRouting(*row) for row in _OF_RESOURCE.rows(tx, wanted)]


def pods_of(tx: Tx, project_id: str | None, resource_type: str) -> Sequence[int]:
    """Return the row ids of the pods with a project's resources; with ``None``, of all projects.

    Routings that no pod has confirmed do not count.
    """
    query = sa.select(_C.pod_id).where(_C.resource_type == resource_type)
    query = query.where(_C.bottom_id.is_not(None)).distinct().order_by(_C.pod_id)
    if project_id is not None:
        query = query.where(_C.project_id == project_id)
    return list(tx.execute(query).scalars())


def homes(tx: Tx, resource_type: str, ids: Iterable[str]) -> dict[str, PodHome]:
    """Return the homes of those of these resources that a pod has confirmed, by their ids."""
    rows = _HOMES.rows(tx, ids)
    return {row[0]: PodHome(*row[2:]) for row in rows if row[1] == resource_type}


def open_ones(tx: Tx, limit: int) -> Sequence[PodRouting]:
    """Return routings that a pod has not confirmed, or whose resource it is deleting."""
    is_open = _C.bottom_id.is_(None) | _C.deleted_at.is_not(None)
    query = _ROWS.where(is_open).order_by(_C.updated_at, _C.id).limit(limit)
    return [PodRouting(*row) for row in tx.execute(query)]


def unchecked(tx: Tx, before: datetime, limit: int) -> Sequence[PodRouting]:
    """Return routings of existing resources that were last written before a moment."""
    query = _ROWS.where(_C.bottom_id.is_not(None), _C.deleted_at.is_(None), _C.updated_at < before)
    query = query.where(_C.number.is_not(None)).order_by(_C.updated_at, _C.id).limit(limit)
    return [PodRouting(*row) for row in tx.execute(query)]


def confirm(tx: Tx, row_id: int, bottom_id: str, now: datetime) -> bool:
    """Name the resource of an open routing. Return whether the routing was open."""
    new = dict(zip(NAMED, (bottom_id, bottom_id, 1, now), strict=True))
    values = {f"new_{name}": each for name, each in new.items()}
    return _CONFIRM.run(tx, [{"row_id": row_id, **values}]) > 0


def change(tx: Tx, row_id: int, values: Mapping[str, object]) -> None:
    """Change columns of a routing."""
    tx.execute(pod_routings.update().where(_C.id == row_id), dict(values))


def used(tx: Tx, project_id: str, resource_type: str) -> tuple[int, int, int, int]:
    """Return the project's number of resources, and the sums of their amounts.

    The amounts are vcpus, memory in MB and size in GB.
    """
    (row,) = _USED.rows(tx, {"project": project_id, "wanted_type": resource_type})
    return tuple(int(each or 0) for each in row)  # type: ignore[return-value]
