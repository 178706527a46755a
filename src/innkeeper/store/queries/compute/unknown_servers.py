"""Database access for servers that agents report but that have no row in the table of servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.ids import ServerId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import unknown_servers
from innkeeper.store.transactions import Tx

_ON = sa.select(unknown_servers.c.host, unknown_servers.c.server_uuid).where(
    unknown_servers.c.host.in_(IDS)
)
_DELETE = unknown_servers.delete().where(unknown_servers.c.host.in_(IDS))


def keep(
    tx: Tx, hosts: Collection[str], found: Mapping[str, Collection[ServerId]], now: datetime
) -> None:
    """Replace the unknown servers of these hosts by ``found``. Unchanged hosts are not written."""
    known: dict[str, set[str]] = {}
    for host, uuid in by_ids.rows(tx, _ON, hosts):
        known.setdefault(host, set()).add(uuid)
    changed = sorted(name for name in hosts if known.get(name, set()) != set(found.get(name, ())))
    by_ids.run(tx, _DELETE, [name for name in changed if name in known])
    rows = [
        {"host": name, "server_uuid": uuid, "reported_at": now}
        for name in changed
        for uuid in sorted(set(found.get(name, ())))
    ]
    if rows:
        tx.execute(unknown_servers.insert(), rows)
