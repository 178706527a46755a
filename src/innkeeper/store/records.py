"""Rows to dataclasses and back, for dataclasses whose fields are named after columns."""

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
    """The columns for the fields of a dataclass, in their order, without those in ``but``.

    ``others`` names the columns for fields that are not columns of the table.
    """
    names = [name for name in kind.__match_args__ if name not in but]
    return [others[name] if name in others else table.c[name] for name in names]


def values(record: Any, but: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass by name, not copied, without those in ``but``."""
    return {name: getattr(record, name) for name in record.__match_args__ if name not in but}


def first(tx: Tx, query: sa.Select[Any], make: Callable[..., T], **parameters: Any) -> T | None:
    """Build a record of the first row that a query finds; ``None`` if it finds none."""
    row = tx.execute(query, parameters or None).first()
    return None if row is None else make(*row)
