"""Questions that are asked of a whole table, or only of some of its rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.transactions import Tx

Rows = list[sa.Row[*tuple[Any, ...]]]
Only = Collection[Any] | None
"""What to look at; ``None`` is everything."""


def narrowed(tx: Tx, query: sa.Select[Any], column: sa.ColumnElement[Any], only: Only) -> Rows:
    """The rows of a query, of which ``column`` is among ``only``."""
    if only is None:
        return list(tx.execute(query))
    return by_ids.rows(tx, query.where(column.in_(IDS)), only)
