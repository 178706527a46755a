"""What the change feed says that a table does not show yet."""

from __future__ import annotations

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.store import changes
from innkeeper.store.transactions import Tx

CHANGES_MIN = 10_000
CHANGES_PER_ROW = 2
"""A table that nobody asked for an hour is millions of changes behind; with more than these it
is read anew. Applying so many takes no longer than that."""


def take(tx: Tx, table: AmountTable) -> set[ProviderId] | None:
    """Move a table's ``change_id`` on, and give the providers whose rows must be read anew.

    ``None`` means all of them, and leaves ``change_id`` alone: the feed was cut behind the
    table, so what it said is lost; or it says so much that reading everything is less.
    """
    most = CHANGES_MIN + CHANGES_PER_ROW * table.row_count
    rows = changes.after(tx, table.change_id, most)
    if not rows:
        return set()
    if len(rows) == most:
        return None
    if rows[0][0] > table.change_id + 1 and changes.oldest(tx) > table.change_id + 1:
        return None
    stale: set[ProviderId] = set()
    for _, provider_id, generation in rows:
        if generation == changes.SERVERS_ONLY:
            is_stale = table.knows_servers
        else:
            is_stale = generation == changes.ALWAYS_READ or not table.shows(
                provider_id, generation
            )
        if is_stale:
            stale.add(provider_id)
    table.change_id = rows[-1][0]
    return stale
