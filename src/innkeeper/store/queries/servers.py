"""Servers: written in bulk, found one by one, and changed by compare-and-update.

Always true: a row whose ``deleted_at`` is set does not change any more; every change names
what it expects of the row, and tells whether it was so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Power, Server, Status, Task
from innkeeper.domain.ids import ServerId
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx

NAMES = tuple(each.name for each in fields(Server))
"""The columns of a server, in the order of its fields."""
ROWS = sa.select(*(servers.c[name] for name in NAMES))
TAGS = NAMES.index("tags")

_BY_UUID = ROWS.where(servers.c.uuid == sa.bindparam("wanted"))
_ALIVE = _BY_UUID.where(servers.c.deleted_at.is_(None))


def server(row: Sequence[Any]) -> Server:
    """Make a server of a row of :data:`ROWS`."""
    values = list(row)
    values[TAGS] = tuple(values[TAGS])
    return Server(*values)


def insert_many(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write new servers; every mapping names the same columns."""
    if rows:
        tx.execute(servers.insert(), list(rows))


def by_uuid(tx: Tx, uuid: str, *, is_deleted_wanted: bool = False) -> Server | None:
    """One server; a deleted one only if that is wanted."""
    query = _BY_UUID if is_deleted_wanted else _ALIVE
    row = tx.execute(query, {"wanted": uuid}).first()
    return None if row is None else server(row)


def by_uuids(tx: Tx, uuids: Iterable[str]) -> list[Server]:
    """The servers among these that exist and are not deleted, in the order they were made."""
    query = ROWS.where(servers.c.uuid.in_(list(uuids))).where(servers.c.deleted_at.is_(None))
    return [server(row) for row in tx.execute(query.order_by(servers.c.id))]


def names_on(tx: Tx, host: str) -> set[ServerId]:
    """The servers that belong on a host now."""
    query = sa.select(servers.c.uuid).where(servers.c.host == host)
    return {
        ServerId(uuid)
        for uuid in tx.execute(query.where(servers.c.deleted_at.is_(None))).scalars()
    }


def change(tx: Tx, uuid: str, seen: datetime, values: Mapping[str, Any]) -> bool:
    """Write some columns of a server; False if it is gone, or was changed after ``seen``."""
    statement = (
        servers.update()
        .where(servers.c.uuid == uuid)
        .where(servers.c.updated_at == seen)
        .where(servers.c.deleted_at.is_(None))
        .values(**values)
    )
    return tx.execute(statement).rowcount == 1


_BUILT = (
    servers.update()
    .where(servers.c.uuid == sa.bindparam("wanted"))
    .where(servers.c.deleted_at.is_(None))
    .where(servers.c.status == Status.BUILD)
)


def mark_built(tx: Tx, uuid: str, host: str | None, now: datetime) -> bool:
    """From BUILD to ACTIVE, on ``host`` if one is named; a server that is going stays so."""
    statement = _BUILT if host is None else _BUILT.where(servers.c.host == host)
    going = sa.case((servers.c.task_state == Task.DELETING, Task.DELETING), else_=None)
    result = tx.execute(
        statement.values(
            status=Status.ACTIVE,
            task_state=going,
            power_state=Power.RUNNING,
            launched_at=now,
            updated_at=now,
        ),
        {"wanted": uuid},
    )
    return result.rowcount == 1


def mark_failed(
    tx: Tx, uuid: str, host: str | None, fault: Mapping[str, Any], now: datetime
) -> bool:
    """From BUILD to ERROR, and off its host."""
    statement = _BUILT if host is None else _BUILT.where(servers.c.host == host)
    going = sa.case((servers.c.task_state == Task.DELETING, Task.DELETING), else_=None)
    result = tx.execute(
        statement.values(
            status=Status.ERROR,
            task_state=going,
            power_state=Power.NO_STATE,
            host=None,
            provider_id=None,
            fault=dict(fault),
            updated_at=now,
        ),
        {"wanted": uuid},
    )
    return result.rowcount == 1


_DELETED = (
    servers.update()
    .where(servers.c.uuid == sa.bindparam("wanted"))
    .where(servers.c.deleted_at.is_(None))
    .values(
        status=Status.DELETED,
        task_state=None,
        power_state=Power.NO_STATE,
        deleted_at=sa.bindparam("now"),
        updated_at=sa.bindparam("now"),
    )
)


def mark_deleted(tx: Tx, uuid: str, now: datetime) -> bool:
    """Delete a server; True for exactly one of those who try."""
    return tx.execute(_DELETED, {"wanted": uuid, "now": now}).rowcount == 1
