"""Pruning of the change feed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. A process that slept longer reads everything again, in seconds."""
KEPT_MAX = 1_000_000
"""Most changes that are kept. Reading everything takes less time than applying so many."""


def prune(tx: Tx, now: datetime) -> int:
    """Delete changes that no process needs any more; return how many."""
    return changes.prune(tx, now - KEPT, KEPT_MAX)
