"""Access to the tables of project limits: one limit for each project and resource."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.transactions import Tx


class LimitTable:
    """A table with the columns ``project_id``, ``resource`` and ``hard_limit``."""

    def __init__(self, table: sa.Table) -> None:
        self._table = table
        columns = (table.c.project_id, table.c.resource, table.c.hard_limit)
        self._set = PreparedForIds(sa.select(*columns).where(table.c.project_id.in_(IDS)))

    def of_projects(self, tx: Tx, projects: Collection[str]) -> dict[str, dict[str, int]]:
        """Return the limits that operators set for these projects, by project and resource."""
        found: dict[str, dict[str, int]] = {project: {} for project in projects}
        for project_id, resource, limit in self._set.rows(tx, found):
            found[project_id][resource] = limit
        return found

    def replace(self, tx: Tx, project_id: str, limits: Mapping[str, int]) -> None:
        """Set these limits of a project. The project's other limits are kept."""
        if not limits:
            return
        self.delete(tx, project_id, limits)
        rows = [
            {"project_id": project_id, "resource": resource, "hard_limit": limit}
            for resource, limit in sorted(limits.items())
        ]
        tx.execute(self._table.insert(), rows)

    def delete(self, tx: Tx, project_id: str, resources: Collection[str] | None = None) -> None:
        """Delete a project's limits for these resources. ``None`` means all resources.

        Afterwards, the defaults apply.
        """
        statement = self._table.delete().where(self._table.c.project_id == project_id)
        if resources is not None:
            statement = statement.where(self._table.c.resource.in_(sorted(resources)))
        tx.execute(statement)
