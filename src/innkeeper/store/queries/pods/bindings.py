"""Database access for bindings of projects to pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.pods import PodBinding, active_key, group_key
from innkeeper.store import records
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.pods import pod_bindings
from innkeeper.store.transactions import Tx

_C = pod_bindings.c
_BINDINGS = sa.select(*records.columns(pod_bindings, PodBinding))
_OF_GROUP = _C.group_key == sa.bindparam("key")
_ACTIVE = Prepared(_BINDINGS.where(_OF_GROUP, _C.ended_at.is_(None)).order_by(_C.chain))
_LAST = Prepared(sa.select(sa.func.max(_C.sequence)).where(_OF_GROUP))


@dataclass(frozen=True, slots=True)
class BindingSearch:
    """The conditions for a list of bindings. ``None`` allows any value of a field."""

    project_id: str | None = None
    pod_uuid: str | None = None
    group_name: str | None = None
    az_name: str | None = None
    is_active: bool | None = None


def add(tx: Tx, binding: PodBinding) -> None:
    """Insert an active binding.

    The database refuses the row if another writer took the same number, or bound the project at the
    same time.
    """
    values = records.values(binding, but=("id",))
    keys = {
        "group_key": group_key(binding.project_id, binding.group_name),
        "active_key": active_key(binding.project_id, binding.group_name, binding.az_name),
    }
    tx.execute(pod_bindings.insert(), {**values, **keys})


def end(tx: Tx, binding_id: int, reason: str, at: datetime) -> bool:
    """End a binding. Return whether the binding was active until now."""
    query = pod_bindings.update().where(_C.id == binding_id).where(_C.ended_at.is_(None))
    values = {"ended_at": at, "end_reason": reason, "active_key": None}
    return tx.execute(query, values).rowcount == 1


def by_uuid(tx: Tx, uuid: str) -> PodBinding | None:
    """Return the binding with this uuid."""
    return records.first(tx, _BINDINGS.where(_C.uuid == uuid), PodBinding)


def active(tx: Tx, project_id: str, group: str) -> list[PodBinding]:
    """Return the active bindings of a project and group.

    A binding that replaces another one belongs to the same chain. The oldest chain comes first.
    """
    rows = _ACTIVE.rows(tx, {"key": group_key(project_id, group)})
    return [PodBinding(*row) for row in rows]


def last_sequence(tx: Tx, project_id: str, group: str) -> int:
    """Return the highest sequence number of the bindings of a project and group, or 0."""
    ((last,),) = _LAST.rows(tx, {"key": group_key(project_id, group)})
    return int(last or 0)


def ended_at(tx: Tx, project_id: str, group: str, az_name: str) -> datetime | None:
    """Return the end of the last binding of a project and group in an availability zone."""
    query = sa.select(sa.func.max(_C.ended_at))
    query = query.where(_C.group_key == group_key(project_id, group), _C.az_name == az_name)
    return tx.execute(query).scalar()


def has_any(tx: Tx, project_id: str) -> bool:
    """Return whether a project has a binding, or had one."""
    query = sa.select(_C.id).where(_C.project_id == project_id).limit(1)
    return tx.execute(query).first() is not None


def every_active(tx: Tx) -> list[PodBinding]:
    """Return all active bindings, oldest first."""
    query = _BINDINGS.where(_C.ended_at.is_(None)).order_by(_C.id)
    return [PodBinding(*row) for row in tx.execute(query)]


def page(tx: Tx, search: BindingSearch, *, after: int, limit: int) -> Sequence[PodBinding]:
    """Return bindings in the order of their row ids, after ``after``."""
    query: sa.Select[Any] = _BINDINGS.where(_C.id > after)
    for column, value in (
        (_C.project_id, search.project_id),
        (_C.pod_uuid, search.pod_uuid),
        (_C.group_name, search.group_name),
        (_C.az_name, search.az_name),
    ):
        if value is not None:
            query = query.where(column == value)
    if search.is_active is not None:
        query = query.where(_C.ended_at.is_(None) if search.is_active else _C.ended_at.is_not(None))
    return [PodBinding(*row) for row in tx.execute(query.order_by(_C.id).limit(limit))]
