"""Database access for the quota usage of projects and zone parents: sums over their servers."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import sqlalchemy as sa

from innkeeper.domain.zone_tree import payer_of
from innkeeper.store import records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import quota_usages
from innkeeper.store.transactions import Tx


class QuotaUsage(msgspec.Struct, frozen=True):
    """A project's number of servers, and the sums of their vcpus and memory."""

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
    """Add these amounts, which may be negative, to a project's usage.

    The amounts are also added to the usage of the project's zone parent, if the project has one.
    """
    for counted in dict.fromkeys((project_id, payer_of(project_id))):
        _add(tx, counted, servers, vcpus, memory_mb)


def _add(tx: Tx, project_id: str, servers: int, vcpus: int, memory_mb: int) -> None:
    # UPDATE, then INSERT if no row exists, since the syntax of upserts differs between databases.
    # If two transactions insert a project's first row, one fails and its batch is retried.
    more = {"servers": servers, "vcpus": vcpus, "memory_mb": memory_mb}
    added = {f"more_{name}": amount for name, amount in more.items()}
    if _ADD.run(tx, [{"project": project_id, **added}]) == 0:
        tx.execute(quota_usages.insert(), {"project_id": project_id, **more})


_OF_PROJECTS = PreparedForIds(
    sa.select(quota_usages.c.project_id, *records.columns(quota_usages, QuotaUsage)).where(
        quota_usages.c.project_id.in_(IDS)
    )
)


def of_projects(tx: Tx, projects: Collection[str]) -> dict[str, QuotaUsage]:
    """Return the usage of these projects, with zeros for projects that never had a server."""
    used = {project: QuotaUsage() for project in projects}
    used.update((project, QuotaUsage(*sums)) for project, *sums in _OF_PROJECTS.rows(tx, projects))
    return used


def of_project(tx: Tx, project_id: str) -> QuotaUsage:
    """Return the usage of one project."""
    return of_projects(tx, [project_id])[project_id]
