"""Database access for the quota usage of projects: sums over their volumes, by type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.volumes import VolumeUsage
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.volumes import volume_quota_usages, volume_types, volumes
from innkeeper.store.transactions import Tx

Counted = tuple[str, int]
"""The key of a row of usage: a project, and the row id of a volume type."""

_C = volume_quota_usages.c
_ADD = Prepared(
    volume_quota_usages.update()
    .where(_C.project_id == sa.bindparam("project"))
    .where(_C.type_id == sa.bindparam("type"))
    .values(
        volumes=_C.volumes + sa.bindparam("more_volumes"),
        gigabytes=_C.gigabytes + sa.bindparam("more_gigabytes"),
    )
)
_OF_PROJECTS = PreparedForIds(
    sa.select(_C.project_id, volume_types.c.uuid, _C.volumes, _C.gigabytes)
    .join(volume_types, volume_types.c.id == _C.type_id)
    .where(_C.project_id.in_(IDS))
)
_HELD_GB = sa.func.sum(sa.func.coalesce(volumes.c.growing_to_gb, volumes.c.size_gb))
_SUMS = sa.select(volumes.c.project_id, volumes.c.type_id, sa.func.count(), _HELD_GB).group_by(
    volumes.c.project_id, volumes.c.type_id
)
_SUMS_AMONG = _SUMS.where(volumes.c.uuid.in_(IDS))


def add(tx: Tx, more: Mapping[Counted, VolumeUsage]) -> None:
    """Add these amounts, which may be negative, to the usage of projects by type."""
    # UPDATE, then INSERT if no row exists, since the syntax of upserts differs between databases.
    # If two transactions insert a project's first row, one fails and its batch is retried.
    for (project_id, type_id), usage in sorted(more.items()):
        if usage == VolumeUsage():
            continue
        values = {
            "project": project_id,
            "type": type_id,
            "more_volumes": usage.volumes,
            "more_gigabytes": usage.gigabytes,
        }
        if _ADD.run(tx, [values]) == 0:
            tx.execute(
                volume_quota_usages.insert(),
                {
                    "project_id": project_id,
                    "type_id": type_id,
                    "volumes": usage.volumes,
                    "gigabytes": usage.gigabytes,
                },
            )


def of_projects(tx: Tx, projects: Collection[str]) -> dict[str, dict[str, VolumeUsage]]:
    """Return the volume usage of projects, by project and uuid of the type."""
    found: dict[str, dict[str, VolumeUsage]] = {project: {} for project in projects}
    for project_id, type_uuid, number, gigabytes in _OF_PROJECTS.rows(tx, found):
        found[project_id][type_uuid] = VolumeUsage(number, gigabytes)
    return found


def of_volumes(tx: Tx, uuids: Collection[str]) -> dict[Counted, VolumeUsage]:
    """Return the quota usage of these volumes, by project and type."""
    found: dict[Counted, VolumeUsage] = {}
    for project_id, type_id, number, gigabytes in by_ids.rows(tx, _SUMS_AMONG, sorted(uuids)):
        key = (project_id, type_id)
        found[key] = found.get(key, VolumeUsage()) + VolumeUsage(number, int(gigabytes))
    return found


def forget_type(tx: Tx, type_id: int) -> None:
    """Delete the usage of a type. No volume may have the type."""
    tx.execute(volume_quota_usages.delete().where(_C.type_id == type_id))


def wrong(tx: Tx) -> list[tuple[Counted, VolumeUsage, VolumeUsage]]:
    """Return the recorded usages that differ from the sums over all volumes.

    The items are (project and type, recorded usage, correct usage).
    """
    recorded = _by_key(tx, sa.select(_C.project_id, _C.type_id, _C.volumes, _C.gigabytes))
    counted = _by_key(tx, _SUMS)
    nothing = VolumeUsage()
    pairs = (
        (key, recorded.get(key, nothing), counted.get(key, nothing))
        for key in sorted(recorded.keys() | counted.keys())
    )
    return [(key, had, real) for key, had, real in pairs if had != real]


def _by_key(tx: Tx, query: sa.Select[Any]) -> dict[Counted, VolumeUsage]:
    rows = tx.execute(query)
    return {(project, kind): VolumeUsage(int(n), int(size)) for project, kind, n, size in rows}
