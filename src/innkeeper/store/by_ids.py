"""Queries for many ids, split so that every database accepts each statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa

from innkeeper.store.transactions import Tx

T = TypeVar("T")
Rows = list[sa.Row[*tuple[Any, ...]]]
Only = Collection[Any] | None
"""The ids to consider. ``None`` means all rows."""

IDS_PER_QUERY = 10_000
"""The maximum number of ids in one ``IN (...)``. SQLite accepts 32,766 parameters, PostgreSQL
65,535."""
IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
"""The placeholder for the ids in a query: ``column.in_(IDS)``."""


def parts(ids: Iterable[T]) -> Iterator[list[T]]:
    """Split ids into groups that fit into one statement. No group is empty."""
    remaining = list(ids)
    for start in range(0, len(remaining), IDS_PER_QUERY):
        yield remaining[start : start + IDS_PER_QUERY]


def rows(tx: Tx, query: sa.Select[Any], ids: Iterable[Any]) -> list[Any]:
    """Return all rows of a query, in which ``ids`` replace the placeholder :data:`IDS`.

    Many ids are split into several queries. Each query sorts and aggregates only its own rows.
    """
    found: list[Any] = []
    for part in parts(ids):
        # All rows at once: fetching many rows one by one takes twice as long.
        found += tx.execute(query, {"ids": part}).all()
    return found


def narrowed(tx: Tx, query: sa.Select[Any], column: sa.ColumnElement[Any], only: Only) -> Rows:
    """Return the rows of a query whose ``column`` has a value in ``only``.

    If ``only`` is ``None``, return all rows.
    """
    if only is None:
        return list(tx.execute(query).all())
    return rows(tx, query.where(column.in_(IDS)), only)


def run(tx: Tx, statement: sa.Update | sa.Delete, ids: Iterable[Any]) -> None:
    """Execute a statement, in which ``ids`` replace the placeholder :data:`IDS`."""
    for part in parts(ids):
        tx.execute(statement, {"ids": part})
