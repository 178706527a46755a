"""Many ids in one statement: as many at once as every database takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa

from innkeeper.store.transactions import Tx

T = TypeVar("T")

IDS_PER_QUERY = 10_000
"""Ids in one ``IN (...)``; SQLite takes 32,766 parameters, PostgreSQL 65,535."""
IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
"""Stands in a query for the ids: ``column.in_(IDS)``."""


def parts(ids: Iterable[T]) -> Iterator[list[T]]:
    """The ids in groups that fit into one statement each; no group is empty."""
    wanted = list(ids)
    for start in range(0, len(wanted), IDS_PER_QUERY):
        yield wanted[start : start + IDS_PER_QUERY]


def rows(tx: Tx, query: sa.Select[Any], ids: Iterable[Any]) -> list[Any]:
    """All rows of a query in which :data:`IDS` stands for these ids; none for no ids.

    A query that sorts or adds up does so for each group of ids by itself.
    """
    found: list[Any] = []
    for part in parts(ids):
        found += tx.execute(query, {"ids": part})
    return found


def run(tx: Tx, statement: sa.Update | sa.Delete, ids: Iterable[Any]) -> None:
    """Change all rows that a statement finds by these ids, for which :data:`IDS` stands."""
    for part in parts(ids):
        tx.execute(statement, {"ids": part})
