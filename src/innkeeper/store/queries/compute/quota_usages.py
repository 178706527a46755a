"""What projects use of their quotas: sums of their servers that are not deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import quota_usages
from innkeeper.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Servers of a project, and what their flavors add up to."""

    servers: int = 0
    vcpus: int = 0
    memory_mb: int = 0


_ADD = Prepared(
    quota_usages.update()
    .where(quota_usages.c.project_id == sa.bindparam("project"))
    .values(
        servers=quota_usages.c.servers + sa.bindparam("more_servers"),
        vcpus=quota_usages.c.vcpus + sa.bindparam("more_vcpus"),
        memory_mb=quota_usages.c.memory_mb + sa.bindparam("more_memory_mb"),
    )
)


def add_usage(tx: Tx, project_id: str, servers: int, vcpus: int, memory_mb: int) -> None:
    """Count these in, or out if they are negative."""
    # UPDATE, then INSERT where there was nothing: an upsert is spelt differently by every
    # database. Of two first servers at once, one INSERT fails and its batch is repeated.
    more = {
        "project": project_id,
        "more_servers": servers,
        "more_vcpus": vcpus,
        "more_memory_mb": memory_mb,
    }
    if _ADD.run(tx, [more]) == 0:
        tx.execute(
            quota_usages.insert(),
            {"project_id": project_id, "servers": servers, "vcpus": vcpus, "memory_mb": memory_mb},
        )


_OF_PROJECTS = PreparedForIds(
    sa.select(
        quota_usages.c.project_id,
        quota_usages.c.servers,
        quota_usages.c.vcpus,
        quota_usages.c.memory_mb,
    ).where(quota_usages.c.project_id.in_(IDS))
)


def of_projects(tx: Tx, projects: Collection[str]) -> dict[str, QuotaUsage]:
    """What these projects use; those that never had a server use nothing."""
    used = {project: QuotaUsage() for project in projects}
    for project, servers, vcpus, memory_mb in _OF_PROJECTS.rows(tx, projects):
        used[project] = QuotaUsage(servers, vcpus, memory_mb)
    return used


def of_project(tx: Tx, project_id: str) -> QuotaUsage:
    """What one project uses."""
    return of_projects(tx, [project_id])[project_id]
