"""The content of the change feed."""

from __future__ import annotations

from innkeeper.domain.ids import BEGINNING, Bookmark, ProviderId
from innkeeper.store import changes
from innkeeper.store.transactions import Tx


def changes_since(tx: Tx, last: Bookmark = BEGINNING) -> list[tuple[ProviderId, int]]:
    """Return the providers that changed after a row, in order, with their generations."""
    rows = changes.after(tx, last)
    assert rows is not None, "the feed was cut"
    return [(each.provider_id, each.generation) for each in rows]


def bookmark_at(tx: Tx, number: int) -> Bookmark:
    """Return the bookmark of a reader that has read all rows before this one, without gaps."""
    rows = changes.after(tx, BEGINNING)
    assert rows is not None, "the feed was cut"
    earlier = [Bookmark(each.id, each.written_at) for each in rows if each.id < number]
    return earlier[-1] if earlier else BEGINNING
