"""What the change feed tells."""

from __future__ import annotations

from innkeeper.domain.ids import BEGINNING, Bookmark, ProviderId
from innkeeper.store import changes
from innkeeper.store.transactions import Tx


def told_since(tx: Tx, last: Bookmark = BEGINNING) -> list[tuple[ProviderId, int]]:
    """Which providers changed behind a row, in order, with the generation that is told."""
    rows = changes.after(tx, last)
    assert rows is not None, "the feed was cut"
    return [(each.provider_id, each.generation) for each in rows]


def bookmark_before(tx: Tx, number: int) -> Bookmark:
    """The bookmark of who has read everything before a row; the feed was never cut."""
    rows = changes.after(tx, BEGINNING)
    assert rows is not None, "the feed was cut"
    earlier = [Bookmark(each.id, each.written_at) for each in rows if each.id < number]
    return earlier[-1] if earlier else BEGINNING
