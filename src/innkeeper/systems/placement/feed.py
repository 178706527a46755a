"""Prune the change feed: the table from which processes learn which providers changed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. A process that has not read the feed for longer reloads its whole
table. The reload takes a few seconds."""
KEPT_MAX = 1_000_000
"""How many changes are kept. Reloading a whole table is faster than applying more changes."""


def prune(tx: Tx, now: datetime) -> int:
    """Delete old changes, and the oldest changes above the limit.

    Return the number of deleted changes.
    """
    return changes.prune(tx, now - KEPT, KEPT_MAX)
