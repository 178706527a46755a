"""How SQLite carries out queries: which indexes it searches, and which tables it scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.store.transactions import Tx


def steps_of(tx: Tx, look: Callable[[Tx], Any]) -> list[str]:
    """Return the steps of all queries of a function that gets the transaction."""
    raw: Any = tx.connection.dbapi_connection
    seen: list[str] = []
    raw.set_trace_callback(seen.append)
    try:
        look(tx)
    finally:
        raw.set_trace_callback(None)
    return [
        str(row[-1])
        for text in seen
        for row in raw.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
    ]
