"""Pages of an ordered list: what comes behind a marker, for any number of sort keys.

Always true: the last key is unique, so a page begins exactly where the one before ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order. A column that can be NULL comes wrapped in ``coalesce``,
    because databases disagree on which end of the order NULL belongs to."""

    column: sa.ColumnElement[Any]
    is_descending: bool = False


def ordered(query: sa.Select[Any], keys: Sequence[SortKey]) -> sa.Select[Any]:
    """Sort a query."""
    return query.order_by(
        *(sa.desc(key.column) if key.is_descending else sa.asc(key.column) for key in keys)
    )


def behind(keys: Sequence[SortKey], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """What comes behind the row that has these ``values`` in the keys' columns.

    For two keys: ``a >= :a AND (a > :a OR (a = :a AND b > :b))``.
    """
    ways: list[sa.ColumnElement[bool]] = []
    equal: list[sa.ColumnElement[bool]] = []
    for key, value in zip(keys, values, strict=True):
        mine = sa.literal(value, key.column.type)
        further = key.column < mine if key.is_descending else key.column > mine
        ways.append(sa.and_(*equal, further))
        equal.append(key.column == mine)
    # This follows from the rest, and lets the first key's index find the place.
    first = keys[0]
    mine = sa.literal(values[0], first.column.type)
    bound = first.column <= mine if first.is_descending else first.column >= mine
    return sa.and_(bound, sa.or_(*ways))
