"""Database access for routings. A routing says in which pod a resource is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.door import GROUP, MAY_TAKE, SERVER, VOLUME
from innkeeper.domain.pods import DISK_GB, MEMORY_MB, VCPUS, VOLUME_GB, PodHome, PodRouting
from innkeeper.domain.volumes import VolumeUsage
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.queries.pods.measurements import NEWEST
from innkeeper.store.tables.compute import server_groups
from innkeeper.store.tables.pods import pod_measurements, pod_routings, pods
from innkeeper.store.transactions import Tx

COMMA, NUL = ",", "\0"
_C = pod_routings.c
_KINDS = {VCPUS: _C.vcpus, MEMORY_MB: _C.memory_mb, DISK_GB: _C.disk_gb, VOLUME_GB: _C.size_gb}
# SELECT pod_routings.pod_id, SUM(number * vcpus), ... FROM (the newest measurement of each pod)
# JOIN pod_measurements ... JOIN pod_routings ON the same pod_id
# AND created_at > coalesce(placed_until, measured_at) GROUP BY pod_routings.pod_id
_COUNTED_UNTIL = sa.func.coalesce(pod_measurements.c.placed_until, pod_measurements.c.measured_at)
_SUMS = (
    sa.select(_C.pod_id, *(sa.func.sum(_C.number * each) for each in _KINDS.values()))
    .select_from(NEWEST)
    .join(pod_measurements, pod_measurements.c.id == NEWEST.c.id)
    .join(pod_routings, (_C.pod_id == pod_measurements.c.pod_id) & (_C.created_at > _COUNTED_UNTIL))
    .group_by(_C.pod_id)
)
_PLACED = Prepared(_SUMS)
_PLACED_UNTIL = Prepared(
    _SUMS.where(_C.created_at <= sa.bindparam("until", type_=_C.created_at.type))
)
_ROWS = sa.select(*records.columns(pod_routings, PodRouting))
# A literal in the SQL, because the ids must be the only parameters.
_COMMA: Any = sa.literal_column(f"'{COMMA}'")
_HOME = records.columns(pod_routings, PodHome)


def _homes_of(resource_type: str) -> PreparedForIds:
    # SELECT group_concat(top_id, ','), ... WHERE resource_type = 'server' ... GROUP BY ...
    # Most resources of a project have the same home, so one row has all of their ids. With a row
    # for each resource, the driver would release and take the interpreter lock a thousand times.
    kind: Any = sa.literal_column(f"'{resource_type}'")
    return PreparedForIds(
        sa.select(sa.func.aggregate_strings(_C.top_id, _COMMA), *_HOME)
        .where(_C.top_id.in_(IDS), _C.resource_type == kind, _C.bottom_id.is_not(None))
        .group_by(*_HOME)
    )


_HOMES = {each: _homes_of(each) for each in (SERVER, VOLUME)}
_IS_OF = sa.and_(
    _C.top_id == sa.bindparam("wanted_id"), _C.resource_type == sa.bindparam("wanted_type")
)
_HAS = (
    sa.exists()
    .where(_C.pod_id == pods.c.id, _C.resource_type == sa.bindparam("wanted_type"))
    .where(_C.bottom_id.is_not(None))
)
_PODS = sa.select(pods.c.id).order_by(pods.c.id)
# Each request for servers or volumes executes one of these queries. It takes one index lookup for
# each pod:
# SELECT id FROM pods WHERE EXISTS (SELECT * FROM pod_routings WHERE pod_id = pods.id AND ...)
_ALL_PODS = Prepared(_PODS.where(_HAS))
_PODS_OF = Prepared(_PODS.where(_HAS.where(_C.project_id == sa.bindparam("project"))))
_ADD = Prepared(pod_routings.insert())
_OF_RESOURCE = Prepared(_ROWS.where(_IS_OF))
_IN_POD = Prepared(_ROWS.where(_IS_OF, _C.pod_id == sa.bindparam("wanted_pod")))
_BY_ID = Prepared(_ROWS.where(_C.id == sa.bindparam("row_id")))
_OPEN_WITH = Prepared(
    _ROWS.where(_C.server_uuid == sa.bindparam("wanted_server"), _C.bottom_id.is_(None)).order_by(
        _C.id
    )
)
_REMOVE = Prepared(pod_routings.delete().where(_C.id == sa.bindparam("row_id")))
NAMED = ("top_id", "bottom_id", "number", "updated_at")
_IS_ROW = _C.id == sa.bindparam("row_id")


def _setting(condition: sa.ColumnElement[bool], names: Iterable[str]) -> Prepared:
    """Return the statement that sets these columns of the routings that meet a condition."""
    new: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in names}
    return Prepared(pod_routings.update().where(condition).values(new))


@cache
def _changed_to(names: tuple[str, ...]) -> Prepared:
    return _setting(_IS_ROW, names)


@cache
def _with_server_to(names: tuple[str, ...]) -> Prepared:
    is_known = _C.bottom_id.is_not(None)
    return _setting((_C.server_uuid == sa.bindparam("wanted_server")) & is_known, names)


_CONFIRM = _setting(_IS_ROW & _C.bottom_id.is_(None), NAMED)
# SELECT SUM(alike * number), SUM(alike * number * vcpus), ... FROM (SELECT number, vcpus, ...,
# count(*) AS alike over the resources of a project GROUP BY number, vcpus, ...). Most resources of
# a project have equal amounts, and the index is sorted by them. So few groups are multiplied.
_AMOUNTS = (_C.number, _C.vcpus, _C.memory_mb, _C.size_gb)
_ALIKE = (
    sa.select(*_AMOUNTS, sa.func.count().label("alike"))
    .where(
        _C.project_id == sa.bindparam("project"), _C.resource_type == sa.bindparam("wanted_type")
    )
    .group_by(*_AMOUNTS)
    .subquery()
)
_NUMBER = _ALIKE.c.alike * _ALIKE.c.number
_USED = Prepared(
    sa.select(
        sa.func.sum(_NUMBER),
        *(
            sa.func.sum(_NUMBER * each)
            for each in (_ALIKE.c.vcpus, _ALIKE.c.memory_mb, _ALIKE.c.size_gb)
        ),
    )
)


def add(tx: Tx, routing: PodRouting) -> int:
    """Insert a routing. Return its row id."""
    _ADD.run(tx, [records.values(routing, but=("id",))])
    made = found(tx, routing.top_id, routing.pod_id, routing.resource_type)
    assert made is not None, "it was just inserted"
    return made.id


def add_many(tx: Tx, routings: Sequence[PodRouting]) -> None:
    """Insert routings."""
    if routings:
        _ADD.run(tx, [records.values(each, but=("id",)) for each in routings])


def found(tx: Tx, top_id: str, pod_id: int, resource_type: str) -> PodRouting | None:
    """Return the routing of a resource to a pod."""
    wanted = {"wanted_id": top_id, "wanted_type": resource_type, "wanted_pod": pod_id}
    return next((PodRouting(*row) for row in _IN_POD.rows(tx, wanted)), None)


def remove(tx: Tx, row_id: int) -> None:
    """Delete a routing."""
    _REMOVE.run(tx, [{"row_id": row_id}])


def by_id(tx: Tx, row_id: int) -> PodRouting | None:
    """Return the routing with this row id."""
    return next((PodRouting(*row) for row in _BY_ID.rows(tx, {"row_id": row_id})), None)


def page(
    tx: Tx, wanted: Mapping[str, object], *, before: int | None, limit: int
) -> Sequence[PodRouting]:
    """Return the routings that have the values in ``wanted``, by column, newest first."""
    query: sa.Select[Any] = _ROWS.order_by(_C.id.desc()).limit(limit)
    for name, value in wanted.items():
        query = query.where(_C[name] == value)
    if before is not None:
        query = query.where(_C.id < before)
    return [PodRouting(*row) for row in tx.execute(query)]


def of_resource(tx: Tx, top_id: str, resource_type: str) -> Sequence[PodRouting]:
    """Return the routings of a resource in all pods. The id may be any text, even with a NUL."""
    if NUL in top_id:
        return ()
    wanted = {"wanted_id": top_id, "wanted_type": resource_type}
    return [PodRouting(*row) for row in _OF_RESOURCE.rows(tx, wanted)]


def of_resources(tx: Tx, top_ids: Iterable[str], resource_type: str) -> Sequence[PodRouting]:
    """Return the routings of these resources in all pods."""
    query = _ROWS.where(_C.top_id.in_(IDS), _C.resource_type == resource_type)
    return [PodRouting(*row) for row in by_ids.rows(tx, query, _without(NUL, top_ids))]


def of_pod(tx: Tx, pod_id: int, resource_type: str) -> Sequence[PodRouting]:
    """Return the routings of resources of one type in a pod."""
    query = _ROWS.where(_C.pod_id == pod_id, _C.resource_type == resource_type)
    return [PodRouting(*row) for row in tx.execute(query)]


def has_any(tx: Tx, project_id: str) -> bool:
    """Return whether a project has a routing."""
    query = sa.select(_C.id).where(_C.project_id == project_id).limit(1)
    return tx.execute(query).first() is not None


def has_type(tx: Tx, type_uuid: str) -> bool:
    """Return whether a volume in a pod has this type."""
    query = sa.select(_C.id).where(_C.type_uuid == type_uuid).limit(1)
    return tx.execute(query).first() is not None


def pods_of(tx: Tx, project_id: str | None, resource_type: str) -> Sequence[int]:
    """Return the row ids of the pods with resources of a project. ``None`` means any project.

    Routings that no pod has confirmed do not count.
    """
    wanted: dict[str, object] = {"wanted_type": resource_type}
    if project_id is None:
        return [pod_id for (pod_id,) in _ALL_PODS.rows(tx, wanted)]
    return [pod_id for (pod_id,) in _PODS_OF.rows(tx, {**wanted, "project": project_id})]


def homes(
    tx: Tx, resource_type: str, ids: Iterable[str]
) -> Sequence[tuple[PodHome, Sequence[str]]]:
    """Return the homes of these resources: their pod, and facts that only this service knows.

    Each item of the result is a home with the ids of its resources. Resources that no pod has
    confirmed are left out.
    """
    # A comma separates the ids in a row. Ids contain none.
    rows = _HOMES[resource_type].rows(tx, _without(NUL, _without(COMMA, ids)))
    return [(PodHome(*home), top_ids.split(COMMA)) for top_ids, *home in rows]


def _without(sign: str, ids: Iterable[str]) -> list[str]:
    """Return the ids that do not contain ``sign``.

    Pods may list any text as an id, but PostgreSQL refuses a query with a NUL in an id.
    """
    found = list(ids)
    # Usually, no id contains the sign, so one test for all ids is enough.
    return found if sign not in "".join(found) else [each for each in found if sign not in each]


# SELECT id ... WHERE bottom_id IS NULL AND number IS NOT NULL UNION SELECT id ... UNION ...
# Each part reads an index of its own. With OR between the conditions, databases read all routings.
_OPEN = sa.union(
    sa.select(_C.id).where(_C.bottom_id.is_(None), _C.number.is_not(None)),
    sa.select(_C.id).where(_C.deleted_at.is_not(None)),
    sa.select(_C.id).where(_C.changing_at.is_not(None)),
).subquery("open_ones")
_IS_OPEN = _OPEN.c.id == _C.id
# As an expression, so that SQLite does not begin with all routings of the pods.
_POD = _C.pod_id + 0
_LOOKED_AT = (_C.updated_at, _C.id)


def open_ones(tx: Tx, pod_ids: Sequence[int], limit: int) -> Sequence[PodRouting]:
    """Return the open routings to these pods.

    A routing is open until the pod has confirmed the creation, change or deletion of the resource.
    The routings that were checked longest ago come first.
    """
    query = _ROWS.join(_OPEN, _IS_OPEN).where(_POD.in_(pod_ids))
    query = query.order_by(*_LOOKED_AT).limit(limit)
    return [PodRouting(*row) for row in tx.execute(query)]


def open_in_each(tx: Tx, pod_ids: Sequence[int], limit: int) -> Sequence[PodRouting]:
    """Return the open routings to these pods, at most ``limit`` for each pod.

    The order is that of :func:`open_ones`.
    """
    place = sa.func.row_number().over(partition_by=_C.pod_id, order_by=_LOOKED_AT)
    placed = sa.select(_C.id, place.label("place")).join(_OPEN, _IS_OPEN)
    placed_rows = placed.where(_POD.in_(pod_ids)).subquery()
    query = _ROWS.join(placed_rows, placed_rows.c.id == _C.id)
    query = query.where(placed_rows.c.place <= limit).order_by(*_LOOKED_AT)
    return [PodRouting(*row) for row in tx.execute(query)]


def of_group(tx: Tx, group_uuid: str) -> Sequence[PodRouting]:
    """Return the routings of the servers of a server group."""
    query = _ROWS.where(_C.server_group_uuid == group_uuid)
    return [PodRouting(*row) for row in tx.execute(query)]


def members(tx: Tx, group_uuids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the ids of the confirmed servers of these server groups, by group."""
    query = sa.select(_C.server_group_uuid, _C.top_id).where(
        _C.server_group_uuid.in_(group_uuids), _C.bottom_id.is_not(None)
    )
    found: dict[str, list[str]] = {}
    for group_uuid, top_id in tx.execute(query.order_by(_C.id)):
        found.setdefault(group_uuid, []).append(top_id)
    return found


def unused_groups(
    tx: Tx, pod_ids: Sequence[int], before: datetime, limit: int
) -> Sequence[PodRouting]:
    """Return the routings of the server groups that these pods no longer need.

    A group can be removed if this service deleted it. A group can also be removed if it has no
    servers in the pod and was not used since ``before``.
    """
    server = pod_routings.alias()
    # As an expression, because SQLite would otherwise read all routings of the pod for each group.
    its_pod = server.c.pod_id + 0
    has_servers = sa.exists().where(server.c.server_group_uuid == _C.top_id, its_pod == _C.pod_id)
    is_unused = (_C.updated_at < before) & ~has_servers
    query = _ROWS.outerjoin(server_groups, server_groups.c.uuid == _C.top_id)
    query = query.where(_C.resource_type == GROUP, server_groups.c.id.is_(None) | is_unused)
    query = query.where(_C.pod_id.in_(pod_ids)).order_by(_C.updated_at, _C.id).limit(limit)
    return [PodRouting(*row) for row in tx.execute(query)]


def open_with_server(tx: Tx, server_uuid: str) -> Sequence[PodRouting]:
    """Return the unconfirmed routings of volumes that a pod makes together with a server."""
    return [PodRouting(*row) for row in _OPEN_WITH.rows(tx, {"wanted_server": server_uuid})]


def change_with_server(tx: Tx, server_uuid: str, values: Mapping[str, object]) -> None:
    """Update columns of the confirmed routings of a server's volumes."""
    new = {f"new_{name}": each for name, each in values.items()}
    _with_server_to(tuple(values)).run(tx, [{"wanted_server": server_uuid, **new}])


def drop_notes(tx: Tx, pod_id: int, before: datetime | None = None) -> None:
    """Delete a pod's notes, which say that another project may still take over a volume.

    With ``before``, delete only notes that were written before this time.
    """
    statement = pod_routings.delete().where(_C.pod_id == pod_id, _C.top_id.startswith(MAY_TAKE))
    if before is not None:
        statement = statement.where(_C.updated_at < before)
    tx.execute(statement)


def confirmed(tx: Tx, pod_id: int) -> int:
    """Return how many routings a pod has confirmed."""
    query = sa.select(sa.func.count()).where(_C.pod_id == pod_id, _C.bottom_id.is_not(None))
    return tx.execute(query).scalar_one()


def confirm(tx: Tx, row_id: int, bottom_id: str, now: datetime) -> bool:
    """Record the pod's id of a resource in a routing.

    If the routing has such an id already, nothing changes. Returns whether the id was recorded.
    """
    new = dict(zip(NAMED, (bottom_id, bottom_id, 1, now), strict=True))
    values = {f"new_{name}": each for name, each in new.items()}
    return _CONFIRM.run(tx, [{"row_id": row_id, **values}]) > 0


def change(tx: Tx, row_id: int, values: Mapping[str, object]) -> None:
    """Update columns of a routing."""
    new = {f"new_{name}": each for name, each in values.items()}
    _changed_to(tuple(values)).run(tx, [{"row_id": row_id, **new}])


def placed(tx: Tx, until: datetime | None = None) -> Mapping[int, Mapping[str, float]]:
    """Return the amounts that were placed in each pod since the pod's newest measurement.

    The result maps the row id of a pod to amounts by kind. With ``until``, only placements up to
    this time count. Pods that were never measured, or have no new placements, are left out.
    """
    found = {}
    rows = _PLACED.rows(tx, {}) if until is None else _PLACED_UNTIL.rows(tx, {"until": until})
    for pod_id, *sums in rows:
        found[pod_id] = {kind: float(each or 0) for kind, each in zip(_KINDS, sums, strict=True)}
    return found


def used_by_type(tx: Tx, project_id: str) -> Mapping[str, VolumeUsage]:
    """Return the volume usage of a project, by the uuid of the volume type.

    The key ``""`` stands for volumes without a type.
    """
    number = sa.func.coalesce(_C.number, 0)
    size = sa.func.sum(number * sa.func.coalesce(_C.size_gb, 0))
    query = sa.select(_C.type_uuid, sa.func.sum(number), size).group_by(_C.type_uuid)
    query = query.where(_C.project_id == project_id, _C.resource_type == VOLUME)
    return {
        type_uuid or "": VolumeUsage(int(count or 0), int(size_gb or 0))
        for type_uuid, count, size_gb in tx.execute(query)
    }


def used(tx: Tx, project_id: str, resource_type: str) -> tuple[int, int, int, int]:
    """Return the number of a project's resources of one type, and the sums of their amounts.

    The sums are vcpus, memory in MB and size in GB.
    """
    (row,) = _USED.rows(tx, {"project": project_id, "wanted_type": resource_type})
    return tuple(int(each or 0) for each in row)  # type: ignore[return-value]
