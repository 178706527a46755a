"""Keyset pagination: the rows after a marker, for any number of sort keys.

Always true: the last key is unique, so a page begins exactly where the previous one ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class SortKey:
    """One sort column. Wrap nullable columns in ``coalesce``: databases sort NULL differently."""

    column: sa.ColumnElement[Any]
    is_descending: bool = False


def ordered(query: sa.Select[Any], keys: Sequence[SortKey]) -> sa.Select[Any]:
    """Sort a query by these keys."""
    return query.order_by(
        *(sa.desc(key.column) if key.is_descending else sa.asc(key.column) for key in keys)
    )


def rows_after(keys: Sequence[SortKey], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Return the condition for the rows after the row whose sort keys have these ``values``.

    For two keys: ``a >= :a AND (a > :a OR (a = :a AND b > :b))``.
    """
    ways: list[sa.ColumnElement[bool]] = []
    equal: list[sa.ColumnElement[bool]] = []
    for key, value in zip(keys, values, strict=True):
        bound = sa.literal(value, key.column.type)
        further = key.column < bound if key.is_descending else key.column > bound
        ways.append(sa.and_(*equal, further))
        equal.append(key.column == bound)
    # Redundant, but it lets the database use the index of the first key.
    first = keys[0]
    bound = sa.literal(values[0], first.column.type)
    is_near = first.column <= bound if first.is_descending else first.column >= bound
    return sa.and_(is_near, sa.or_(*ways))
