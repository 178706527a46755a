"""What the change feed tells."""

from __future__ import annotations

from innkeeper.domain.ids import ChangeId, ProviderId
from innkeeper.store import changes
from innkeeper.store.transactions import Tx


def told_since(tx: Tx, last: int = 0) -> list[tuple[ProviderId, int]]:
    """Which providers changed behind a row, in order, with the generation that is told."""
    rows = changes.after(tx, ChangeId(last))
    assert rows is not None, "the feed was cut"
    return [(each.provider_id, each.generation) for each in rows]
