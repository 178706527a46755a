"""Database access for the servers of this zone that belong to boot batches and zone parents."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import HeldServer
from innkeeper.store import by_ids, records
from innkeeper.store.queries.compute.servers import IS_NOT_DELETED
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx

_FACTS = sa.select(*records.columns(servers, HeldServer, but=("is_undecided",)))
_HELD = _FACTS.where(servers.c.deleted_at.is_(None))
_BY_UUIDS = _FACTS.where(servers.c.uuid.in_(by_ids.IDS)).where(IS_NOT_DELETED)


def of_batch(tx: Tx, batch_id: str, project_id: str, since: datetime) -> list[ServerId]:
    """Return the ids of the servers that a project's boot batch created after ``since``."""
    query = (
        sa.select(servers.c.uuid)
        .where(servers.c.batch_id == batch_id)
        .where(servers.c.project_id == project_id)
        .where(servers.c.created_at > since)
        .where(servers.c.deleted_at.is_(None))
    )
    return [ServerId(row[0]) for row in tx.execute(query)]


def deleted_of_batch(tx: Tx, batch_id: str, project_id: str, since: datetime) -> int:
    """Return how many of a boot batch's servers, created after ``since``, are deleted by now."""
    query = (
        sa.select(sa.func.count())
        .select_from(servers)
        .where(servers.c.batch_id == batch_id)
        .where(servers.c.project_id == project_id)
        .where(servers.c.created_at > since)
        .where(servers.c.deleted_at.is_not(None))
    )
    return int(tx.execute(query).scalar_one())


def of_prefix(tx: Tx, prefix: str, after: str | None, limit: int) -> list[HeldServer]:
    """Return servers of projects whose ids begin with ``prefix``, ordered by uuid.

    Only servers with a uuid above ``after`` are returned.
    """
    query = _HELD.where(servers.c.project_id.startswith(prefix, autoescape=True))
    if after is not None:
        query = query.where(servers.c.uuid > after)
    return [HeldServer(*row) for row in tx.execute(query.order_by(servers.c.uuid).limit(limit))]


def by_uuids(tx: Tx, uuids: Collection[str]) -> list[HeldServer]:
    """Return the servers with these uuids that are in this zone."""
    return [HeldServer(*row) for row in by_ids.rows(tx, _BY_UUIDS, uuids)]
