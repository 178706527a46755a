"""What the change feed says that a table does not show yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from innkeeper.domain.ids import Bookmark, ClassId, ProviderId
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.store import changes
from innkeeper.store.changes import Change
from innkeeper.store.transactions import Tx

CHANGES_MIN = 10_000
CHANGES_PER_ROW = 2
"""A table that nobody asked for an hour is millions of changes behind; with more than these it
is read anew. Applying so many takes no longer than that."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken over from the feed."""

    stale: set[ProviderId] = field(default_factory=set)
    """Providers whose rows must be read anew."""
    edited: set[ProviderId] = field(default_factory=set)
    """Those whose rows show by now what others claimed."""


def take(tx: Tx, table: AmountTable) -> Taken | None:
    """Move a table's bookmark on, and apply what can be applied without reading more.

    ``None`` means that all rows must be read anew, and leaves the table alone: the feed was cut
    behind it, or is not the one that it was read from, so what was said there is lost; or there
    is so much that reading all is less.
    """
    most = CHANGES_MIN + CHANGES_PER_ROW * table.row_count
    rows = changes.after(tx, table.bookmark, most)
    if rows is None or len(rows) == most:
        return None
    taken = Taken()
    # Once for all of them: there can be thousands of classes.
    names = {class_id: name for name, class_id in table.class_ids.items()} if rows else {}
    for each in rows:
        if each.provider_id in taken.stale or _is_shown(table, each):
            continue
        if _apply(table, each, names):
            taken.edited.add(each.provider_id)
        else:
            taken.stale.add(each.provider_id)
    if rows:
        table.bookmark = Bookmark(rows[-1].id, rows[-1].written_at)
    return taken


def _is_shown(table: AmountTable, change: Change) -> bool:
    if change.generation == changes.SERVERS_ONLY:
        return not table.knows_servers
    if change.generation == changes.ALWAYS_READ:
        return False
    return table.shows(change.provider_id, change.generation)


def _apply(table: AmountTable, change: Change, names: Mapping[ClassId, str]) -> bool:
    """Take what claims took, if it is known and nothing else is missing before it."""
    # Whose servers came with the claims is not told, so who counts them has to read.
    if change.taken is None or change.seen is None or table.knows_servers:
        return False
    amounts = changes.amounts(change.taken)
    if not amounts.keys() <= names.keys():
        return False
    by_name = {names[class_id]: amount for class_id, amount in amounts.items()}
    return table.follow_claims(change.provider_id, change.seen, change.generation, by_name)
