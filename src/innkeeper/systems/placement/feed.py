"""Pruning of the change feed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. A process that is further behind reloads everything within seconds."""
KEPT_MAX = 1_000_000
"""How many changes are kept. Reloading everything takes less time than applying that many."""


def prune(tx: Tx, now: datetime) -> int:
    """Delete changes that no process needs any more. Return their number."""
    return changes.prune(tx, now - KEPT, KEPT_MAX)
