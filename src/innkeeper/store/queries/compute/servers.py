"""Database access for servers, which are changed by compare-and-update.

Pages begin after the last row of the previous page (keyset pagination), not at an offset. So each
page costs the same, and no server is listed twice if other servers are created or deleted in
between.

Always true: a deleted row never changes. Every update names the state that it expects of a server,
and reports whether the server was in that state. A client's patterns and tags reach the database
only as parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from innkeeper.domain.compute import Power, Server, Status, Task
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import ProviderId, ServerId
from innkeeper.domain.listing import Pattern, ServerSelection, StateCondition
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import hosts, servers
from innkeeper.store.transactions import Tx

ROWS = sa.select(*records.columns(servers, Server))
TAGS = [each.name for each in fields(Server)].index("tags")
ESCAPE = "\\"
EARLIEST = "0001-01-01 00:00:00.000000"
"""The value that replaces a missing timestamp for sorting."""
FEW = frozenset({"host", "batch_id"})
"""Columns whose values belong to few servers each."""


def _without_index(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a column inside a function call, so that SQLite uses no index on the column."""
    return sa.func.coalesce(column, sa.null())


IS_NOT_DELETED = _without_index(servers.c.deleted_at).is_(None)
"""The condition that a server is not deleted, for statements with many ids. With an index on
``deleted_at`` and eight ids or more, SQLite would read all servers that are not deleted."""
_BY_UUID = ROWS.where(servers.c.uuid == sa.bindparam("requested"))
_ALIVE = _BY_UUID.where(servers.c.deleted_at.is_(None))


def server(row: Sequence[Any]) -> Server:
    """Build a server from a row of :data:`ROWS`."""
    values = list(row)
    values[TAGS] = tuple(values[TAGS])
    return Server(*values)


_INSERT = Prepared(servers.insert())


def insert_many(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert servers. All mappings must have the same columns."""
    if rows:
        _INSERT.run(tx, rows)


def by_uuid(tx: Tx, uuid: str, *, is_deleted_wanted: bool = False) -> Server | None:
    """Return the server with this uuid.

    A deleted server is returned only if ``is_deleted_wanted`` is set.
    """
    query = _BY_UUID if is_deleted_wanted else _ALIVE
    row = tx.execute(query, {"requested": uuid}).first()
    return None if row is None else server(row)


@dataclass(frozen=True, slots=True)
class Alive:
    """A server that is not deleted, with the facts that are needed to end its orders."""

    uuid: ServerId
    project_id: str
    user_id: str
    vcpus: int
    memory_mb: int
    status: str
    task_state: str | None
    host: str | None
    provider_id: ProviderId | None
    created_at: datetime


_ALIVE_MANY = PreparedForIds(
    sa.select(*records.columns(servers, Alive)).where(servers.c.uuid.in_(IDS)).where(IS_NOT_DELETED)
)


def alive(tx: Tx, uuids: Iterable[str]) -> list[Alive]:
    """Return the servers with these uuids that exist and are not deleted."""
    return [Alive(*row) for row in _ALIVE_MANY.rows(tx, uuids)]


def hints_of(tx: Tx, uuids: Collection[str]) -> dict[ServerId, Mapping[str, Any]]:
    """Return the scheduler hints of these servers."""
    query = sa.select(servers.c.uuid, servers.c.hints).where(servers.c.uuid.in_(IDS))
    return {ServerId(uuid): given for uuid, given in by_ids.rows(tx, query, uuids)}


def idle_since(tx: Tx, status: str, before: datetime, limit: int) -> list[Server]:
    """Return servers with this status, a host, no task state, and no update since ``before``."""
    query = (
        ROWS.where(servers.c.status == status)
        .where(servers.c.host.is_not(None))
        .where(servers.c.task_state.is_(None))
        .where(servers.c.deleted_at.is_(None))
        .where(servers.c.updated_at < before)
        .order_by(servers.c.id)
        .limit(limit)
    )
    return [server(row) for row in tx.execute(query)]


_PLACED = (
    servers.update()
    .where(servers.c.uuid == sa.bindparam("server"))
    .where(servers.c.status == Status.BUILD)
    .where(servers.c.deleted_at.is_(None))
    .values(
        host=sa.bindparam("to_host"),
        provider_id=sa.bindparam("to_provider"),
        updated_at=sa.bindparam("now"),
    )
)


def place_elsewhere(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Move servers in BUILD to other hosts. Each row has the UPDATE's parameters for a server."""
    if rows:
        tx.execute(_PLACED, list(rows))


_KNOWN = PreparedForIds(sa.select(servers.c.uuid).where(servers.c.uuid.in_(IDS)))


def ever_known(tx: Tx, uuids: Collection[str]) -> set[str]:
    """Return the uuids that belong to a server, deleted or not."""
    return {row[0] for row in _KNOWN.rows(tx, uuids)}


def change(tx: Tx, uuid: str, seen: datetime, values: Mapping[str, Any]) -> bool:
    """Update columns of a server.

    Returns False if the server was deleted, or changed after ``seen``.
    """
    statement = (
        servers.update()
        .where(servers.c.uuid == uuid)
        .where(servers.c.updated_at == seen)
        .where(servers.c.deleted_at.is_(None))
        .values(**values)
    )
    return tx.execute(statement).rowcount == 1


_MANY = (
    servers.update()
    .where(servers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
    .where(IS_NOT_DELETED)
)
_IN_BUILD = _MANY.where(servers.c.status == Status.BUILD)
_STILL_GOING = sa.case((servers.c.task_state == Task.DELETING, Task.DELETING), else_=None)
_BUILT = _IN_BUILD.values(
    status=Status.ACTIVE,
    task_state=_STILL_GOING,
    power_state=Power.RUNNING,
    launched_at=sa.bindparam("now"),
    updated_at=sa.bindparam("now"),
)
_FAILED = _IN_BUILD.values(
    status=Status.ERROR,
    task_state=_STILL_GOING,
    power_state=Power.NO_STATE,
    host=None,
    provider_id=None,
    updated_at=sa.bindparam("now"),
)
_KEPT = _MANY.values(
    status=Status.ERROR, task_state=None, power_state=Power.NO_STATE, updated_at=sa.bindparam("now")
)
_DELETED = _MANY.values(
    status=Status.DELETED,
    task_state=None,
    power_state=Power.NO_STATE,
    deleted_at=sa.bindparam("now"),
    updated_at=sa.bindparam("now"),
)
_FAULT = (
    servers.update()
    .where(servers.c.uuid == sa.bindparam("requested"))
    .values(fault=sa.bindparam("what", type_=sa.JSON))
)


def mark_built(tx: Tx, uuids: Collection[ServerId], now: datetime) -> None:
    """Move servers from BUILD to ACTIVE. Clear their task states, except for ``deleting``.

    Raises :class:`ConcurrentUpdate` if a server is not in BUILD. The caller must then roll back.
    The ``mark_`` functions below also raise this error if a server is not in the state that they
    expect.
    """
    _mark(tx, _BUILT, uuids, now)


def mark_failed(tx: Tx, faults: Mapping[ServerId, Mapping[str, Any]], now: datetime) -> None:
    """Move servers from BUILD to ERROR, and remove their hosts."""
    _mark(tx, _FAILED, faults, now)
    _write_faults(tx, faults)


def mark_kept(tx: Tx, faults: Mapping[ServerId, Mapping[str, Any]], now: datetime) -> None:
    """Move servers to ERROR, but leave them on their hosts, because their deletion failed."""
    _mark(tx, _KEPT, faults, now)
    _write_faults(tx, faults)


def mark_deleted(tx: Tx, uuids: Collection[ServerId], now: datetime) -> None:
    """Mark servers as deleted. If several transactions mark the same server, only one succeeds."""
    _mark(tx, _DELETED, uuids, now)


def _mark(tx: Tx, statement: sa.Update, uuids: Collection[ServerId], now: datetime) -> None:
    if tx.execute(statement, {"uuids": list(uuids), "now": now}).rowcount != len(uuids):
        raise ConcurrentUpdate("Another transaction changed the same servers concurrently.")


def _write_faults(tx: Tx, faults: Mapping[ServerId, Mapping[str, Any]]) -> None:
    # This transaction has locked the rows, so the state need not be compared again.
    rows = [{"requested": uuid, "what": dict(fault)} for uuid, fault in faults.items()]
    tx.execute(_FAULT, rows)


def page(tx: Tx, selection: ServerSelection, marker: Server | None) -> list[Server]:
    """Return up to ``selection.limit`` servers after ``marker``, in the requested order."""
    # All rows at once: fetching many rows one by one takes twice as long.
    return [server(row) for row in tx.execute(statement(tx, selection, marker)).all()]


def statement(tx: Tx, selection: ServerSelection, marker: Server | None) -> sa.Select[Any]:
    """Return the query for one page. If there is a marker, first query the marker's sort key."""
    order = [SortKey(sort_column(selection, name), falls) for name, falls in selection.sort]
    order.append(SortKey(servers.c.id, order[-1].is_descending if order else True))
    query = ROWS.where(*conditions(selection))
    if marker is not None:
        query = query.where(rows_after(order, _key_of(tx, order, marker)))
    return ordered(query, order).limit(selection.limit)


def sort_column(selection: ServerSelection, name: str) -> sa.ColumnElement[Any]:
    """Return the expression by which a list is sorted.

    The servers of one host or of one request are few, so they are found first and then sorted. With
    an index on the column, SQLite would read the servers of all hosts in the order of this index,
    until it has found enough of these servers.
    """
    column = _sortable(name)
    return column if FEW.isdisjoint(selection.exact) else _without_index(column)


def _sortable(name: str) -> sa.ColumnElement[Any]:
    column: sa.ColumnElement[Any] = servers.c[name]
    if isinstance(column.type, sa.Boolean):
        # Some databases cannot sort booleans.
        return sa.case((column, 1), else_=0)
    if not servers.c[name].nullable:
        return column
    # Databases disagree on whether NULL sorts first or last. Here, it sorts first.
    if isinstance(column.type, sa.String):
        return sa.func.coalesce(column, sa.literal(""))
    return sa.func.coalesce(sa.cast(column, sa.String(40)), sa.literal(EARLIEST))


def _key_of(tx: Tx, order: Sequence[SortKey], marker: Server) -> Sequence[Any]:
    # The database computes the marker's sort key as it does for every row.
    query = sa.select(*(key.column for key in order)).where(servers.c.id == marker.id)
    return tx.execute(query).one()


def conditions(selection: ServerSelection) -> Iterator[sa.ColumnElement[bool]]:
    if selection.is_deleted is False:
        yield servers.c.deleted_at.is_(None)
    elif selection.is_deleted is True:
        yield servers.c.deleted_at.is_not(None)
    for name, values in selection.exact.items():
        yield _is_one_of(servers.c[name], values)
    for name, pattern in selection.like.items():
        # The database converts both sides, because some databases convert only ASCII letters.
        lowered = sa.func.lower(_like(pattern))
        yield sa.func.lower(servers.c[name]).like(lowered, escape=ESCAPE)
    for name, moment in selection.since.items():
        yield servers.c[name] >= moment
    for name, moment in selection.until.items():
        yield servers.c[name] <= moment
    for states in selection.states:
        yield sa.or_(*(_is_in_state(state) for state in states))
    if selection.availability_zone is not None:
        yield _is_in_zone(selection.availability_zone)
    yield from _tag_conditions(selection)
    for key, value in selection.metadata.items():
        yield _holds(servers.c.metadata, "{", f"{_json(key)}:{_json(value)}")


def _is_one_of(column: sa.Column[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    known = [value for value in values if value is not None]
    found = column.in_(known) if len(known) != 1 else column == known[0]
    return sa.or_(found, column.is_(None)) if None in values else found


def _is_in_state(selection: StateCondition) -> sa.ColumnElement[bool]:
    there = servers.c.status == selection.status
    if selection.tasks:
        return sa.and_(there, servers.c.task_state.in_(selection.tasks))
    if selection.without_tasks:
        task = sa.func.coalesce(servers.c.task_state, "")
        return sa.and_(there, task.not_in(selection.without_tasks))
    return there


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


def _tag_conditions(selection: ServerSelection) -> Iterator[sa.ColumnElement[bool]]:
    tags = selection.tags
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
    """Return the condition that the text of a JSON column contains the element ``written``.

    Only an element begins with an unescaped quote after an opening bracket or a comma, so text
    within a string cannot match. Only REPLACE is case-sensitive on every database:
    ``length(replace(tags, :element, '')) < length(tags)``.
    """
    text = sa.cast(column, sa.Text)
    found = [
        sa.func.length(sa.func.replace(text, before + written, "")) < sa.func.length(text)
        for before in (opening, ",")
    ]
    return sa.or_(*found)


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
