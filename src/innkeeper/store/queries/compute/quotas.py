"""Database access for the quotas that operators set for projects."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import quotas
from innkeeper.store.transactions import Tx

_SET = PreparedForIds(
    sa.select(quotas.c.project_id, quotas.c.resource, quotas.c.hard_limit).where(
        quotas.c.project_id.in_(IDS)
    )
)


def of_projects(tx: Tx, projects: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the limits that override the defaults, by project and resource."""
    found: dict[str, dict[str, int]] = {}
    for project_id, resource, limit in _SET.rows(tx, projects):
        found.setdefault(project_id, {})[resource] = limit
    return found


def replace(tx: Tx, project_id: str, limits: Mapping[str, int]) -> None:
    """Set these limits of a project. Its other limits are kept."""
    if not limits:
        return
    delete(tx, project_id, limits)
    rows = [
        {"project_id": project_id, "resource": resource, "hard_limit": limit}
        for resource, limit in sorted(limits.items())
    ]
    tx.execute(quotas.insert(), rows)


def delete(tx: Tx, project_id: str, resources: Collection[str]) -> None:
    """Reset a project's limits for these resources to the defaults."""
    tx.execute(
        quotas.delete()
        .where(quotas.c.project_id == project_id)
        .where(quotas.c.resource.in_(sorted(resources)))
    )
