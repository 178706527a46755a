"""Prune the change feed, the table that tells processes which providers have changed."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.store import changes
from innkeeper.store.transactions import Tx

KEPT = timedelta(hours=1)
"""How long changes are kept. A process that reads the feed too late reloads its whole table, which
takes a few seconds."""
KEPT_MAX = 1_000_000
"""The maximum number of changes kept. Above this number, reloading a whole table is faster."""


def prune(tx: Tx, now: datetime) -> int:
    """Delete changes older than :data:`KEPT`, and the oldest changes above :data:`KEPT_MAX`.

    Return the number of deleted changes.
    """
    return changes.prune(tx, now - KEPT, KEPT_MAX)
