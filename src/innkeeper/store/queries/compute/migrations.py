"""Database access for migrations, which are changed by compare-and-update.

Always true: a migration's status changes only from the status that the caller read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import OPEN, Migration, MigrationSelection, MigrationStatus
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.tables.compute import migrations
from innkeeper.store.transactions import Tx

_MIGRATIONS = sa.select(*records.columns(migrations, Migration))
_NEWEST_FIRST = (
    SortKey(migrations.c.created_at, is_descending=True),
    SortKey(migrations.c.id, is_descending=True),
)


def add(tx: Tx, row: Mapping[str, Any]) -> Migration:
    """Insert a migration, given as a mapping of its columns, and return it."""
    tx.execute(migrations.insert(), dict(row))
    found = by_uuid(tx, row["uuid"])
    assert found is not None, "it was just inserted"
    return found


def by_id(tx: Tx, number: int) -> Migration | None:
    """Return the migration with this number."""
    return records.first(tx, _MIGRATIONS.where(migrations.c.id == number), Migration)


def by_uuid(tx: Tx, uuid: str) -> Migration | None:
    """Return the migration with this uuid."""
    return records.first(tx, _MIGRATIONS.where(migrations.c.uuid == uuid), Migration)


def open_ones(tx: Tx, server_uuids: Collection[str]) -> list[Migration]:
    """Return the migrations of these servers that may still have allocations, oldest first."""
    query = _MIGRATIONS.where(migrations.c.server_uuid.in_(list(server_uuids)))
    query = query.where(migrations.c.status.in_(sorted(OPEN)))
    return [Migration(*row) for row in tx.execute(query.order_by(migrations.c.id))]


def open_on(tx: Tx, host: str) -> list[Migration]:
    """Return the migrations from or to a host that may still have allocations."""
    query = _MIGRATIONS.where(migrations.c.status.in_(sorted(OPEN)))
    here = (migrations.c.source_host == host) | (migrations.c.dest_host == host)
    return [Migration(*row) for row in tx.execute(query.where(here))]


def finished_from(tx: Tx, hosts: Collection[str], limit: int) -> list[ServerId]:
    """Return servers that were moved from these hosts and can still return to them, oldest first.

    Their owners have neither confirmed nor reverted the moves.
    """
    query = (
        sa.select(migrations.c.server_uuid)
        .where(migrations.c.status == MigrationStatus.FINISHED)
        .where(migrations.c.source_host.in_(IDS))
        .order_by(migrations.c.id)
        .limit(limit)
    )
    return [ServerId(uuid) for (uuid,) in by_ids.rows(tx, query, hosts)][:limit]


def hosts_of(tx: Tx, statuses: Collection[str]) -> set[str]:
    """Return the source and destination hosts of the migrations in these statuses."""
    ends = sa.select(migrations.c.source_host, migrations.c.dest_host)
    rows = tx.execute(ends.where(migrations.c.status.in_(sorted(statuses))))
    return {host for row in rows for host in row if host is not None}


def quiet_since(tx: Tx, before: datetime, statuses: Collection[str], limit: int) -> list[Migration]:
    """Return migrations in these statuses without an update since ``before``, oldest first."""
    query = _MIGRATIONS.where(migrations.c.status.in_(sorted(statuses)))
    query = query.where(migrations.c.updated_at < before)
    rows = tx.execute(query.order_by(migrations.c.updated_at).limit(limit))
    return [Migration(*row) for row in rows]


def touch(tx: Tx, number: int, now: datetime) -> None:
    """Set the time of a migration's last update."""
    tx.execute(migrations.update().where(migrations.c.id == number).values(updated_at=now))


def change_status(
    tx: Tx, seen: Migration, status: str, now: datetime, message: str | None = None
) -> None:
    """Change a migration's status.

    Raises :class:`ConcurrentUpdate` unless the status is still the one in ``seen``.
    """
    values: dict[str, Any] = {"status": status, "updated_at": now}
    if message is not None:
        values["message"] = message
    result = tx.execute(
        migrations.update()
        .where(migrations.c.id == seen.id)
        .where(migrations.c.status == seen.status)
        .values(**values)
    )
    if result.rowcount != 1:
        raise ConcurrentUpdate("Another transaction changed the same migration concurrently.")


def page(tx: Tx, selection: MigrationSelection, marker: Migration | None) -> list[Migration]:
    """Return up to ``selection.limit`` migrations after ``marker``, newest first."""
    query = _MIGRATIONS.where(*_conditions(selection))
    if marker is not None:
        query = query.where(rows_after(_NEWEST_FIRST, (marker.created_at, marker.id)))
    if selection.limit is not None:
        query = query.limit(selection.limit)
    return [Migration(*row) for row in tx.execute(ordered(query, _NEWEST_FIRST))]


def _conditions(selection: MigrationSelection) -> Iterator[sa.ColumnElement[bool]]:
    exact = {
        "source_host": selection.source_host,
        "server_uuid": selection.server_uuid,
        "kind": selection.kind,
        "user_id": selection.user_id,
        "project_id": selection.project_id,
    }
    for name, value in exact.items():
        if value is not None:
            yield migrations.c[name] == value
    if selection.statuses is not None:
        yield migrations.c.status.in_(selection.statuses)
    if selection.host is not None:
        here = migrations.c.source_host == selection.host
        yield sa.or_(here, migrations.c.dest_host == selection.host)
    if selection.since is not None:
        yield migrations.c.updated_at >= selection.since
    if selection.until is not None:
        yield migrations.c.updated_at <= selection.until
