"""Database access for the volume quotas that operators set for projects."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from innkeeper.store.tables.volumes import volume_quotas
from innkeeper.store.transactions import Tx


def of_project(tx: Tx, project_id: str) -> dict[str, int]:
    """Return the limits that override the defaults, by resource."""
    query = sa.select(volume_quotas.c.resource, volume_quotas.c.hard_limit).where(
        volume_quotas.c.project_id == project_id
    )
    return {resource: limit for resource, limit in tx.execute(query)}


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
