"""What the change feed says that a table does not show yet."""

from __future__ import annotations

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.store import changes
from innkeeper.store.transactions import Tx


def take(tx: Tx, table: AmountTable) -> set[ProviderId] | None:
    """Move a table's ``change_id`` on, and give the providers whose rows must be read anew.

    ``None`` means all of them, and leaves ``change_id`` alone: the feed was cut behind the
    table, so what it said is lost.
    """
    rows = changes.after(tx, table.change_id)
    if not rows:
        return set()
    if rows[0][0] > table.change_id + 1 and changes.oldest(tx) > table.change_id + 1:
        return None
    stale: set[ProviderId] = set()
    for _, provider_id, generation in rows:
        if generation == changes.ALWAYS_READ or not table.shows(provider_id, generation):
            stale.add(provider_id)
    table.change_id = rows[-1][0]
    return stale
