"""Queries for availability zones. A zone exists if at least one host is in the zone."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.compute import HostStatus
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.transactions import Tx

_STATES = (
    sa.select(
        hosts.c.availability_zone,
        hosts.c.name,
        hosts.c.is_disabled,
        hosts.c.is_forced_down,
        agents.c.last_seen_at,
    )
    .join(agents, agents.c.id == hosts.c.agent_id)
    .order_by(hosts.c.availability_zone, hosts.c.name)
)


def usable(tx: Tx, seen_since: datetime) -> dict[str, bool]:
    """Return every zone, and whether it has a host that is enabled and up.

    A host is up if it is not forced down and its agent was seen since ``seen_since``.
    """
    # SELECT availability_zone, MAX(CASE WHEN ... THEN 1 ELSE 0 END) ... GROUP BY 1
    is_usable = sa.and_(
        hosts.c.is_disabled == sa.false(),
        hosts.c.is_forced_down == sa.false(),
        agents.c.last_seen_at >= seen_since,
    )
    query = (
        sa.select(hosts.c.availability_zone, sa.func.max(sa.case((is_usable, 1), else_=0)))
        .join(agents, agents.c.id == hosts.c.agent_id)
        .group_by(hosts.c.availability_zone)
        .order_by(hosts.c.availability_zone)
    )
    return {zone: bool(found) for zone, found in tx.execute(query)}


def host_states(tx: Tx) -> list[tuple[str, HostStatus]]:
    """Return every host with its zone, ordered by zone and name."""
    return [(zone, HostStatus(*rest)) for zone, *rest in tx.execute(_STATES)]
