"""Database access for the volume quotas that operators set for projects."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.volumes import volume_quotas
from innkeeper.store.transactions import Tx

_SET = PreparedForIds(
    sa.select(
        volume_quotas.c.project_id, volume_quotas.c.resource, volume_quotas.c.hard_limit
    ).where(volume_quotas.c.project_id.in_(IDS))
)


def of_projects(tx: Tx, projects: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the limits that override the defaults, by project and resource."""
    found: dict[str, dict[str, int]] = {project: {} for project in projects}
    for project_id, resource, limit in _SET.rows(tx, found):
        found[project_id][resource] = limit
    return found


def replace(tx: Tx, project_id: str, limits: Mapping[str, int]) -> None:
    """Set these limits of a project. Its other limits are kept."""
    if not limits:
        return
    tx.execute(
        volume_quotas.delete()
        .where(volume_quotas.c.project_id == project_id)
        .where(volume_quotas.c.resource.in_(sorted(limits)))
    )
    rows = [
        {"project_id": project_id, "resource": resource, "hard_limit": limit}
        for resource, limit in sorted(limits.items())
    ]
    tx.execute(volume_quotas.insert(), rows)


def delete(tx: Tx, project_id: str) -> None:
    """Reset all limits of a project to the defaults."""
    tx.execute(volume_quotas.delete().where(volume_quotas.c.project_id == project_id))


def forget_type(tx: Tx, suffix: str) -> None:
    """Delete the limits of a type that is being deleted, in all projects."""
    tx.execute(volume_quotas.delete().where(volume_quotas.c.resource.endswith(suffix)))
