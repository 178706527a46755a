"""Sums up the resources in pods by project. The routings are the source of the sums."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.door import MAY_TAKE, SERVER, VOLUME
from innkeeper.domain.pods import PodContents
from innkeeper.store.tables.pods import pod_bindings, pod_routings
from innkeeper.store.transactions import Tx

_C = pod_routings.c
_NUMBER = sa.func.coalesce(_C.number, 1)
_IS_THERE = ~_C.top_id.startswith(MAY_TAKE)
"""The condition that a routing belongs to a resource. Some routings are only notes that another
project may still take over a volume."""


def _sum(value: Any, *conditions: Any) -> sa.ColumnElement[Any]:
    return sa.func.sum(sa.case((sa.and_(*conditions), value), else_=0))


_IS_MADE = _C.bottom_id.is_not(None)
_SUMS = (
    _sum(_NUMBER, _C.resource_type == SERVER, _IS_MADE),
    _sum(_NUMBER, _C.resource_type == VOLUME, _IS_MADE),
    _sum(_NUMBER, _IS_MADE, _C.deleted_at.is_not(None)),
    _sum(_NUMBER, ~_IS_MADE),
    *(
        sa.func.sum(sa.func.coalesce(each, 0) * _NUMBER)
        for each in (_C.vcpus, _C.memory_mb, _C.size_gb)
    ),
)
"""The sums, in the order of the fields of :class:`PodContents`."""


def by_project(
    tx: Tx, pod_id: int, *, after: str = "", limit: int | None = None
) -> list[PodContents]:
    """Return sums over the resources of each project in a pod, ordered by project id.

    Only projects with an id above ``after`` are returned, and at most ``limit``.
    """
    query = sa.select(_C.project_id, *_SUMS).where(_C.pod_id == pod_id, _C.project_id > after)
    query = query.where(_IS_THERE).group_by(_C.project_id).order_by(_C.project_id).limit(limit)
    return list(_contents(tx, query))


def total(tx: Tx, pod_id: int) -> PodContents:
    """Return sums over all resources in a pod."""
    query = sa.select(sa.literal(""), *_SUMS).where(_C.pod_id == pod_id, _IS_THERE)
    (found,) = _contents(tx, query)
    return found


def project_count(tx: Tx, pod_id: int) -> int:
    """Return the number of projects with resources in a pod."""
    query = sa.select(sa.func.count(sa.distinct(_C.project_id)))
    query = query.where(_C.pod_id == pod_id, _IS_THERE)
    return tx.execute(query).scalar_one()


def bound_projects(tx: Tx, pod_id: int, project_ids: Collection[str]) -> set[str]:
    """Return the projects in ``project_ids`` that have an active binding to a pod."""
    is_active = pod_bindings.c.ended_at.is_(None)
    query = sa.select(pod_bindings.c.project_id).where(pod_bindings.c.pod_id == pod_id, is_active)
    return {each for (each,) in tx.execute(query)} & set(project_ids)


def _contents(tx: Tx, query: sa.Select[Any]) -> Iterator[PodContents]:
    for project_id, *sums in tx.execute(query):
        yield PodContents(project_id, *(int(each or 0) for each in sums))
