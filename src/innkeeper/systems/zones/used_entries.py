"""Build plan entries that a zone parent has used for a server, or has given up.

Always true: an entry makes at most one server. An entry that was given up makes no server. If an
entry has no zone parent, it needs no row, because the server's row shows that it is used.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.store.queries.zones import remote
from innkeeper.store.transactions import Tx

# Queries that are re-exported unchanged.
used = remote.used
use_many = remote.use_many
UsedEntry = remote.UsedEntry
prune = remote.prune_entries


def use(tx: Tx, entry_id: str, server_uuid: str, expires_at: datetime) -> None:
    """Record that an entry was used for a server."""
    remote.use_many(tx, [UsedEntry(entry_id, server_uuid, expires_at)])
