"""Fill the table of providers from the store: all of it, or some rows.

Always true afterwards: each row that was asked for equals what the transaction sees, and a
provider that is gone has no row.
"""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amount_loader import Rows, load_amounts
from innkeeper.snapshot.providers import NO_PROVIDER, ProviderTable
from innkeeper.store import changes
from innkeeper.store.queries.placement import capacity, providers
from innkeeper.store.transactions import Tx


def load_all(tx: Tx) -> ProviderTable:
    """Make the table of all providers as ``tx`` sees them."""
    table = ProviderTable()
    # ``tx`` sees one moment, or is the only one to write, so no claim comes between this and
    # the rows: it would be in the amounts, and be taken once more when the feed tells it.
    table.bookmark = changes.newest(tx)
    load(tx, table, None)
    return table


def load(tx: Tx, table: ProviderTable, ids: Collection[ProviderId] | None) -> None:
    """Read the rows of these providers anew, or of all."""
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
