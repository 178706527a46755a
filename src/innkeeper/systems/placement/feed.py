"""Care for the change feed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. Who slept longer reads everything anew, which takes seconds."""
KEPT_MAX = 1_000_000
"""Changes that are kept at most. Reading everything takes less time than applying so many."""


def prune(tx: Tx, now: datetime) -> int:
    """Forget changes that everybody has applied, or never will; give their number."""
    return changes.prune(tx, now - KEPT, KEPT_MAX)
