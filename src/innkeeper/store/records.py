"""Conversion between rows and records: dataclasses or structs with fields named after columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import sqlalchemy as sa

from innkeeper.store.transactions import Tx

T = TypeVar("T")


def columns(
    table: sa.FromClause,
    kind: type[Any],
    but: Collection[str] = (),
    **others: sa.ColumnElement[Any],
) -> list[sa.ColumnElement[Any]]:
    """Return a table's columns for the fields of a class, in order. Fields in ``but`` are left out.

    ``others`` contains the columns for fields that are not columns of the table.
    """
    names = [name for name in kind.__match_args__ if name not in but]
    return [others[name] if name in others else table.c[name] for name in names]


def values(record: Any, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a record by name, except the fields in ``but``.

    Values are not copied.
    """
    return {name: getattr(record, name) for name in type(record).__match_args__ if name not in but}


def first(tx: Tx, query: sa.Select[Any], make: Callable[..., T], **parameters: Any) -> T | None:
    """Build a record from the first row of a query. Returns ``None`` if there are no rows."""
    row = tx.execute(query, parameters or None).first()
    return None if row is None else make(*row)
