"""Queries for the servers that ran in a period, deleted or not, for usage reports."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.usage import ServerPeriod
from innkeeper.store import records
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx


def in_window(
    tx: Tx,
    start: datetime,
    stop: datetime,
    *,
    project_id: str | None,
    after_row: int,
    limit: int | None,
) -> list[ServerPeriod]:
    """Return the servers that ran between ``start`` and ``stop``, oldest first."""
    query = (
        sa.select(
            *records.columns(servers, ServerPeriod, row=servers.c.id, flavor_name=servers.c.flavor)
        )
        .where(sa.or_(servers.c.deleted_at.is_(None), servers.c.deleted_at > start))
        .where(servers.c.launched_at < stop)
        .where(servers.c.id > after_row)
        .order_by(servers.c.id)
    )
    if project_id is not None:
        query = query.where(servers.c.project_id == project_id)
    if limit is not None:
        query = query.limit(limit)
    return [
        ServerPeriod(row, uuid, name, project, flavor["name"], *rest)
        for row, uuid, name, project, flavor, *rest in tx.execute(query)
    ]


def row_of(tx: Tx, uuid: str) -> tuple[int, str] | None:
    """Return the row id and project of a server, which may be deleted."""
    query = sa.select(servers.c.id, servers.c.project_id).where(servers.c.uuid == uuid)
    row = tx.execute(query).first()
    return None if row is None else (row[0], row[1])
