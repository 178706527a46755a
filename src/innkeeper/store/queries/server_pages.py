"""Pages of servers: filtered, ordered and cut by one statement, without counting through.

Pages are found by the last row of the one before (keyset), not by an offset, so the tenth page
costs what the first did and nothing is shown twice when servers come and go in between.

Always true: no pattern or tag of a client reaches the database as anything but a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from innkeeper.domain.compute import Server
from innkeeper.domain.listing import Pattern, ServerSelection
from innkeeper.store.queries.servers import ROWS, server
from innkeeper.store.tables.compute import hosts, servers
from innkeeper.store.transactions import Tx

ESCAPE = "\\"
EARLIEST = "0001-01-01 00:00:00.000000"


def page(tx: Tx, wish: ServerSelection, marker: Server | None) -> list[Server]:
    """The servers behind ``marker`` in the wished order, at most ``wish.limit``."""
    return [server(row) for row in tx.execute(statement(tx, wish, marker))]


def statement(tx: Tx, wish: ServerSelection, marker: Server | None) -> sa.Select[Any]:
    """The query for one page; with a marker, its place is looked up first."""
    order = [(_sortable(name), falls) for name, falls in wish.sort]
    order.append((servers.c.id, order[-1][1] if order else True))
    query = ROWS.where(*_conditions(wish))
    if marker is not None:
        query = query.where(_behind(order, _key_of(tx, order, marker)))
    query = query.order_by(*(key.desc() if falls else key.asc() for key, falls in order))
    return query.limit(wish.limit)


def _sortable(name: str) -> sa.ColumnElement[Any]:
    column: sa.ColumnElement[Any] = servers.c[name]
    if isinstance(column.type, sa.Boolean):
        # Not every database knows which of true and false is more.
        return sa.case((column, 1), else_=0)
    if not servers.c[name].nullable:
        return column
    # Databases disagree on whether nothing comes first or last; here it comes first.
    if isinstance(column.type, sa.String):
        return sa.func.coalesce(column, sa.literal(""))
    return sa.func.coalesce(sa.cast(column, sa.String(40)), sa.literal(EARLIEST))


def _key_of(
    tx: Tx, order: Sequence[tuple[sa.ColumnElement[Any], bool]], marker: Server
) -> Sequence[Any]:
    # The database computes the marker's key as it computes everybody's.
    query = sa.select(*(key for key, _ in order)).where(servers.c.id == marker.id)
    return tx.execute(query).one()


def _behind(
    order: Sequence[tuple[sa.ColumnElement[Any], bool]], values: Sequence[Any]
) -> sa.ColumnElement[bool]:
    # (a > :a) OR (a = :a AND b > :b) OR ..., where > is < for a key that falls.
    alternatives = []
    for depth, (key, falls) in enumerate(order):
        same = [order[i][0] == values[i] for i in range(depth)]
        further = key < values[depth] if falls else key > values[depth]
        alternatives.append(sa.and_(*same, further))
    first, falls = order[0]
    # This follows from the rest, and lets the first key's index find the place.
    bound = first <= values[0] if falls else first >= values[0]
    return sa.and_(bound, sa.or_(*alternatives))


def _conditions(wish: ServerSelection) -> Iterator[sa.ColumnElement[bool]]:
    if wish.is_deleted is False:
        yield servers.c.deleted_at.is_(None)
    elif wish.is_deleted is True:
        yield servers.c.deleted_at.is_not(None)
    for name, values in wish.exact.items():
        yield _is_one_of(servers.c[name], values)
    for name, pattern in wish.like.items():
        # The database lowers both: not all of them know more than the letters of ASCII.
        wanted = sa.func.lower(_like(pattern))
        yield sa.func.lower(servers.c[name]).like(wanted, escape=ESCAPE)
    for name, moment in wish.since.items():
        yield servers.c[name] >= moment
    for name, moment in wish.until.items():
        yield servers.c[name] <= moment
    if wish.availability_zone is not None:
        yield _is_in_zone(wish.availability_zone)
    yield from _tag_conditions(wish)
    for key, value in wish.metadata.items():
        yield _holds(servers.c.metadata, "{", f"{_json(key)}:{_json(value)}")


def _is_one_of(column: sa.Column[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    known = [value for value in values if value is not None]
    found = column.in_(known) if len(known) != 1 else column == known[0]
    return sa.or_(found, column.is_(None)) if None in values else found


def _like(pattern: Pattern) -> str:
    parts = ["".join(_escaped(char) for char in part) for part in pattern.parts]
    text = "%".join(parts)
    return ("" if pattern.starts else "%") + text + ("" if pattern.ends else "%")


def _escaped(char: str | None) -> str:
    if char is None:
        return "_"
    return ESCAPE + char if char in ("%", "_", ESCAPE) else char


def _is_in_zone(zone: str) -> sa.ColumnElement[bool]:
    there = sa.select(hosts.c.name).where(hosts.c.availability_zone == zone)
    nowhere = sa.and_(servers.c.host.is_(None), servers.c.asked_az == zone)
    return sa.or_(servers.c.host.in_(there), nowhere)


def _tag_conditions(wish: ServerSelection) -> Iterator[sa.ColumnElement[bool]]:
    tags = wish.tags
    for tag in tags.every:
        yield _has_tag(tag)
    if tags.some:
        yield sa.or_(*(_has_tag(tag) for tag in tags.some))
    if tags.not_every:
        yield sa.not_(sa.and_(*(_has_tag(tag) for tag in tags.not_every)))
    for tag in tags.not_some:
        yield sa.not_(_has_tag(tag))


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    return _holds(servers.c.tags, "[", _json(tag))


def _holds(column: sa.Column[Any], opening: str, written: str) -> sa.ColumnElement[bool]:
    """Whether a JSON column's text has ``written`` as an element of its own.

    Behind an opening bracket or a comma, a quote that is not escaped begins an element, so
    nothing within a string can look like one. REPLACE, because it alone minds case on every
    database: ``length(replace(tags, :element, '')) < length(tags)``.
    """
    text = sa.cast(column, sa.Text)
    found = [
        sa.func.length(sa.func.replace(text, before + written, "")) < sa.func.length(text)
        for before in (opening, ",")
    ]
    return sa.or_(*found)


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
