"""Keep a table of all providers up to date.

Always true after :meth:`ProviderFollower.catch_up`: the table shows everything that was committed
before the transaction began to read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot import feed
from innkeeper.snapshot.amount_loader import Rows, load_amounts
from innkeeper.snapshot.providers import NO_PROVIDER, ProviderTable
from innkeeper.store import changes
from innkeeper.store.queries.placement import capacity, providers
from innkeeper.store.transactions import Tx


class ProviderFollower:
    """Owns a table of providers, for one thread that has read-only transactions."""

    def __init__(self) -> None:
        self._table: ProviderTable | None = None

    def catch_up(self, tx: Tx) -> ProviderTable:
        """Update the table to the state that ``tx`` sees, and return it.

        The first call reads the whole table. After a database error, some rows may be incomplete,
        so the next call also reads the whole table.
        """
        table, self._table = self._table, None
        taken = None if table is None else feed.take(tx, table)
        if table is None or taken is None:
            table = load_all(tx)
        elif taken.stale:
            load(tx, table, taken.stale)
        self._table = table
        return table


def load_all(tx: Tx) -> ProviderTable:
    """Read the table of all providers."""
    table = ProviderTable()
    # As in ``loader.load_all``, the transaction must not see claims that are committed between this
    # read and the other reads.
    table.bookmark = changes.newest(tx)
    load(tx, table, None)
    return table


def load(tx: Tx, table: ProviderTable, ids: Collection[ProviderId] | None) -> None:
    """Read the rows of these providers, or of all if ``ids`` is None. Remove deleted providers."""
    found = providers.families(tx, ids)
    there = {each.id for each in found}
    for provider_id in list(table.index_of) if ids is None else ids:
        if provider_id not in there:
            table.remove_row(provider_id)
    if not found:
        return
    table.add((each.id, each.uuid) for each in found)
    for each in found:
        index = table.index_of[each.id]
        table.clear_row(index)
        table.set_family(index, each.parent_id or NO_PROVIDER, each.root_id)
    some = None if ids is None else there
    traits = _by_provider(load_amounts(tx, table, some))
    aggregates = _by_provider(capacity.aggregate_rows(tx, some))
    for provider_id in there:
        index = table.index_of[provider_id]
        table.set_traits(index, frozenset(traits.get(provider_id, ())))
        table.set_aggregates(index, frozenset(aggregates.get(provider_id, ())))


def _by_provider(rows: Rows) -> dict[ProviderId, list[str]]:
    found: dict[ProviderId, list[str]] = {}
    for provider_id, name in rows:
        found.setdefault(provider_id, []).append(name)
    return found
