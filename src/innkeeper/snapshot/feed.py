"""Apply the change feed to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from innkeeper.domain.ids import Bookmark, ClassId, ProviderId
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.store import changes
from innkeeper.store.changes import Change
from innkeeper.store.transactions import Tx

CHANGES_MIN = 10_000
CHANGES_PER_ROW = 2
"""If a table lacks more changes than ``CHANGES_MIN`` plus this number per row, the whole table is
read, because this is faster than applying the changes. For example, a table may lack so many
changes after an hour without use."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Providers with new changes. ``edited`` rows are current, and ``stale`` rows must be read."""

    stale: set[ProviderId] = field(default_factory=set)
    edited: set[ProviderId] = field(default_factory=set)


def take(tx: Tx, table: AmountTable, before_edit: Callable[[], None] | None = None) -> Taken | None:
    """Advance a table's bookmark, and apply the changes that need no further reads.

    If there are any changes, ``before_edit`` is called first.

    Returns ``None`` if the table must be read completely. This happens if there are too many
    changes, or if the feed was truncated or replaced. The table is then unchanged.
    """
    most = CHANGES_MIN + CHANGES_PER_ROW * table.row_count
    rows = changes.after(tx, table.bookmark, most)
    if before_edit is not None and rows != []:
        before_edit()
    if rows is None or len(rows) == most:
        return None
    taken = Taken()
    names: dict[ClassId, str] = {}
    for each in rows:
        if each.provider_id in taken.stale or _is_shown(table, each):
            continue
        if not names:
            # The mapping is built once, because there can be thousands of classes. It is built only
            # if needed, because the table of a process that writes already shows the process's own
            # changes.
            names = {class_id: name for name, class_id in table.class_ids.items()}
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
    if change.taken is not None and table.leaves_out(change.provider_id):
        # A claim cannot turn a provider into a host or a pool. Writes that can do so add changes
        # without amounts.
        return True
    return table.shows(change.provider_id, change.generation)


def _apply(table: AmountTable, change: Change, names: Mapping[ClassId, str]) -> bool:
    """Apply the amounts of claims to a row. Return False if the row must be read instead.

    A row must be read if the amounts are unknown, or if the row does not show all earlier changes.
    """
    # Changes do not contain the projects of servers. A table with servers must therefore read the
    # row.
    if change.taken is None or change.seen is None or table.knows_servers:
        return False
    amounts = changes.amounts(change.taken)
    if not amounts.keys() <= names.keys():
        return False
    by_name = {names[class_id]: amount for class_id, amount in amounts.items()}
    return table.follow_claims(change.provider_id, change.seen, change.generation, by_name)
