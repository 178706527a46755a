"""Keep a table of all providers in step with the store, by the change feed.

Always true after :meth:`ProviderFollower.catch_up`: the table shows everything that was
committed before the transaction began to read, and nothing that was not.
"""

from __future__ import annotations

from innkeeper.snapshot import feed, provider_loader
from innkeeper.snapshot.providers import ProviderTable
from innkeeper.store.transactions import Tx


class ProviderFollower:
    """Owns a table of providers. Used by one thread, with transactions that only read."""

    def __init__(self) -> None:
        self._table: ProviderTable | None = None

    def catch_up(self, tx: Tx) -> ProviderTable:
        """Bring the table up to what ``tx`` sees, and give it; the first time, read it all.

        Raises whatever the database raises; the table is then read whole the next time, since
        some of its rows may be half new.
        """
        table, self._table = self._table, None
        taken = None if table is None else feed.take(tx, table)
        if table is None or taken is None:
            table = provider_loader.load_all(tx)
        elif taken.stale:
            provider_loader.load(tx, table, taken.stale)
        self._table = table
        return table
