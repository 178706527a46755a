"""Queries that find inconsistent servers in child zones. On a sound database, they find nothing."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.store.by_ids import Rows
from innkeeper.store.tables.compute import servers
from innkeeper.store.tables.zones import zone_servers
from innkeeper.store.transactions import Tx


def in_two_zones(tx: Tx) -> Rows:
    """Return the servers of this zone that are in a child zone too, as rows of (uuid,)."""
    query = sa.select(servers.c.uuid).join(zone_servers, zone_servers.c.uuid == servers.c.uuid)
    return list(tx.execute(query.where(servers.c.deleted_at.is_(None))))


def in_states_since(tx: Tx, states: tuple[str, ...], before: datetime) -> Rows:
    """Return servers in these states that were added before ``before``.

    The rows are (uuid, state).
    """
    query = sa.select(zone_servers.c.uuid, zone_servers.c.state)
    query = query.where(zone_servers.c.state.in_(states)).where(zone_servers.c.created_at < before)
    return list(tx.execute(query))
