"""Prune the change feed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. A process that is further behind reloads its whole table.

That takes a few seconds."""
KEPT_MAX = 1_000_000
"""How many changes are kept. Reloading a whole table is faster than applying more changes."""


def prune(tx: Tx, now: datetime) -> int:
    """Delete changes that are too old, or too many. Return the number of deleted changes."""
    return changes.prune(tx, now - KEPT, KEPT_MAX)
