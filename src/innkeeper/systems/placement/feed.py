"""Care for the change feed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long a change is kept. Who slept longer reads everything anew, which takes seconds."""


def prune(tx: Tx, now: datetime) -> int:
    """Forget changes that everybody has applied, or never will; give their number."""
    return changes.prune(tx, now - KEPT)
