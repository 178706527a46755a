"""Reads pages of this zone's servers for lists that cover several zones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Server
from innkeeper.domain.listing import ServerSelection
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx


def page_in_tree(
    tx: Tx, selection: ServerSelection, after: Sequence[Any] | None
) -> list[tuple[Server, list[Any]]]:
    """Return up to ``selection.limit`` servers with their sort keys, after the sort key ``after``.

    Ties are sorted by uuid, which is the same in all zones, and not by row id. Keys consist of
    plain values, so a zone can continue after the key of another zone's server.
    """
    order = tree_order(selection)
    query = server_rows.ROWS.add_columns(*(key.column for key in order))
    query = query.where(*server_rows.conditions(selection))
    if after is not None:
        values = [_from_plain(key.column, value) for key, value in zip(order, after, strict=True)]
        query = query.where(rows_after(order, values))
    found = tx.execute(ordered(query, order).limit(selection.limit))
    count = len(order)
    return [
        (server_rows.server(row[:-count]), [_to_plain(each) for each in row[-count:]])
        for row in found
    ]


def tree_key_of(tx: Tx, selection: ServerSelection, marker: Server) -> list[Any]:
    """Return the sort key of a server, as :func:`page_in_tree` returns it."""
    order = tree_order(selection)
    query = sa.select(*(key.column for key in order)).where(servers.c.id == marker.id)
    return [_to_plain(each) for each in tx.execute(query).one()]


def tree_order(selection: ServerSelection) -> list[SortKey]:
    """Return the sort columns of a list over several zones."""
    order = [
        SortKey(server_rows.sort_column(selection, name), falls) for name, falls in selection.sort
    ]
    order.append(SortKey(servers.c.uuid, order[-1].is_descending if order else True))
    return order


def _to_plain(value: Any) -> Any:
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def _from_plain(column: sa.ColumnElement[Any], value: Any) -> Any:
    kind = column.type.python_type
    if kind is datetime and isinstance(value, str):
        value = datetime.fromisoformat(value).replace(tzinfo=None)
    if isinstance(value, kind | None):
        return value
    raise TypeError(kind)
