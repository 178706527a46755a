"""Query for the number of servers by host and project, for the snapshot."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from innkeeper.domain.compute import Status
from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts, servers
from innkeeper.store.transactions import Tx

_IS_BUSY = sa.or_(servers.c.status == Status.BUILD, servers.c.task_state.is_not(None))
_COUNTS = (
    sa.select(
        servers.c.provider_id,
        servers.c.project_id,
        sa.func.count(),
        sa.func.sum(sa.case((_IS_BUSY, 1), else_=0)),
    )
    .where(servers.c.deleted_at.is_(None))
    .where(servers.c.provider_id.is_not(None))
    .group_by(servers.c.provider_id, servers.c.project_id)
)
# Filters by host name, since servers have an index on it.
_COUNTS_OF = _COUNTS.where(
    servers.c.host.in_(sa.select(hosts.c.name).where(hosts.c.provider_id.in_(IDS)))
)


def for_snapshot(
    tx: Tx, provider_ids: Collection[ProviderId] | None
) -> list[tuple[ProviderId, str, int, int]]:
    """Return rows of (provider, project, number of servers, number of busy servers).

    The rows are for these providers, or for all providers if ``provider_ids`` is ``None``. A server
    is busy while it is being built or has a task state.
    """
    ids = None if provider_ids is None else sorted(provider_ids)
    rows = tx.execute(_COUNTS) if ids is None else by_ids.rows(tx, _COUNTS_OF, ids)
    return [(ProviderId(row[0]), row[1], int(row[2]), int(row[3])) for row in rows]
