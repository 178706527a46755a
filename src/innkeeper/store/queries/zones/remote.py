"""Database access for servers in child zones, and for used entries of build plans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import ZoneServer, ZoneServerState
from innkeeper.store import by_ids, pruning, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.zones import child_zones, used_entries, zone_servers
from innkeeper.store.transactions import Tx

_SERVERS = sa.select(*records.columns(zone_servers, ZoneServer))
_BY_UUIDS = PreparedForIds(_SERVERS.where(zone_servers.c.uuid.in_(IDS)))
_ENTRIES = PreparedForIds(
    sa.select(used_entries.c.id, used_entries.c.server_uuid).where(used_entries.c.id.in_(IDS))
)

_ADD = Prepared(zone_servers.insert())


def add(tx: Tx, servers: Sequence[ZoneServer]) -> None:
    """Insert servers.

    Raises :class:`AlreadyExists` if a server is already recorded, or if its child zone was removed.
    """
    if not servers:
        return
    try:
        _ADD.run_records(tx, servers)
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(
            "A zone below already has, or is making, one of these servers."
        ) from error


def by_uuids(tx: Tx, uuids: Collection[str]) -> list[ZoneServer]:
    """Return the servers with these uuids that are in child zones."""
    return [ZoneServer(*row) for row in _BY_UUIDS.rows(tx, uuids)]


def of_batch(tx: Tx, batch_id: str, project_id: str) -> list[ZoneServer]:
    """Return a project's servers of a boot batch, in the order of their ids."""
    query = _SERVERS.where(zone_servers.c.batch_id == batch_id)
    query = query.where(zone_servers.c.project_id == project_id).order_by(zone_servers.c.uuid)
    return [ZoneServer(*row) for row in tx.execute(query)]


def set_state(
    tx: Tx, uuids: Collection[str], before: Collection[str], state: str, now: datetime
) -> int:
    """Set the state of these servers, if their present state is one of ``before``.

    Returns the number of changed servers.
    """
    if not uuids:
        return 0
    query = (
        zone_servers.update()
        .where(zone_servers.c.uuid.in_(list(uuids)))
        .where(zone_servers.c.state.in_(list(before)))
    )
    return tx.execute(query, {"state": state, "updated_at": now}).rowcount


def decide(tx: Tx, uuids: Collection[str]) -> int:
    """Record that this zone has decided to keep or to undo the boot batch of these servers.

    Returns the number of servers whose batch was undecided before this call.
    """
    if not uuids:
        return 0
    query = zone_servers.update().where(zone_servers.c.uuid.in_(list(uuids)))
    return tx.execute(query.where(zone_servers.c.batch_min > 0), {"batch_min": 0}).rowcount


# UPDATE zone_servers SET batch_min = 0,
#        state = CASE WHEN state IN (begun) THEN 'built' ELSE state END, updated_at = (alike)
#  WHERE uuid IN (uuids) AND ...
#
# One statement instead of two, because each statement writes all rows and their indexes.
_STATES = {
    "building": ZoneServerState.BUILDING,
    "built": ZoneServerState.BUILT,
    "undoing": ZoneServerState.UNDOING,
    "decided": 0,
}
"""The states are passed as parameters, because a prepared statement can contain no constants and no
IN."""

_IS_BEGUN = (zone_servers.c.state == sa.bindparam("building")) | (
    zone_servers.c.state == sa.bindparam("built")
)
# SQLAlchemy does not give a parameter in CASE the type of the column. Without a type, SQLite's
# driver would write the time in a format of its own, which Python 3.12 deprecated.
_NOW = sa.bindparam("now", type_=zone_servers.c.updated_at.type)
# The order matters: MariaDB assigns from left to right, and later expressions read the new values.
_SETTLE = zone_servers.update().ordered_values(
    ("updated_at", sa.case((_IS_BEGUN, _NOW), else_=zone_servers.c.updated_at)),
    ("state", sa.case((_IS_BEGUN, sa.bindparam("built")), else_=zone_servers.c.state)),
    ("batch_min", sa.bindparam("decided")),
)
_KEEP = _SETTLE.where(zone_servers.c.uuid.in_(IDS)).where(
    zone_servers.c.batch_min > sa.bindparam("decided")
)
_SETTLE_MANY = _SETTLE.where(zone_servers.c.uuid.in_(IDS)).where(
    zone_servers.c.state != sa.bindparam("undoing")
)
_SETTLE_ONE = Prepared(
    _SETTLE.where(zone_servers.c.uuid == sa.bindparam("requested")).where(
        zone_servers.c.state != sa.bindparam("undoing")
    )
)


def keep(tx: Tx, uuids: Collection[str], now: datetime) -> int:
    """Record that this zone keeps the boot batch of these servers.

    The servers count as built, except servers that are being undone. If this zone has already
    decided to keep or to undo the batch, nothing changes. Returns the number of changed servers.
    """
    return sum(
        tx.execute(_KEEP, {**_STATES, "ids": part, "now": now}).rowcount
        for part in by_ids.parts(uuids)
    )


def settle(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Record that this zone keeps these servers.

    This zone may already have decided to keep or to undo the boot batch of the servers. The servers
    count as built. Servers that are being undone do not change.
    """
    if len(uuids) == 1:
        # Most boots are of one server, and an IN takes several times as long.
        _SETTLE_ONE.run(tx, [{**_STATES, "requested": next(iter(uuids)), "now": now}])
        return
    for part in by_ids.parts(uuids):
        tx.execute(_SETTLE_MANY, {**_STATES, "ids": part, "now": now})


def touch(tx: Tx, uuids: Collection[str], now: datetime, least: int) -> int:
    """Set ``updated_at`` of these servers, if their ``batch_min`` is at least ``least``.

    Returns the number of changed servers.
    """
    if not uuids:
        return 0
    query = zone_servers.update().where(zone_servers.c.uuid.in_(list(uuids)))
    return tx.execute(query.where(zone_servers.c.batch_min >= least), {"updated_at": now}).rowcount


def set_amounts(tx: Tx, uuid: str, vcpus: int, memory_mb: int) -> None:
    """Set the vcpus and the memory of a server, after a resize."""
    query = zone_servers.update().where(zone_servers.c.uuid == uuid)
    tx.execute(query, {"vcpus": vcpus, "memory_mb": memory_mb})


def remove(tx: Tx, uuids: Collection[str]) -> None:
    """Delete the rows of these servers."""
    if uuids:
        tx.execute(zone_servers.delete().where(zone_servers.c.uuid.in_(list(uuids))))


def undecided(tx: Tx, before: datetime, most: int) -> list[ZoneServer]:
    """Return servers of undecided boot batches, if the servers did not change since ``before``.

    A batch is undecided until this zone knows whether to keep or to undo it. The servers that
    changed longest ago come first.
    """
    may_be_open = (ZoneServerState.UNDOING, ZoneServerState.DELETING)
    is_open = (zone_servers.c.state == ZoneServerState.BUILDING) | (
        zone_servers.c.state.in_(may_be_open) & (zone_servers.c.batch_min > 0)
    )
    return _oldest(tx, is_open, before, most)


def undone(tx: Tx, before: datetime, most: int) -> list[ZoneServer]:
    """Return servers that are being undone, and whose boot batch is decided.

    See :func:`undecided` for ``before`` and the sort order.
    """
    is_undone = (zone_servers.c.state == ZoneServerState.UNDOING) & (zone_servers.c.batch_min == 0)
    return _oldest(tx, is_undone, before, most)


def deleted(tx: Tx, before: datetime, most: int) -> list[ZoneServer]:
    """Return servers whose deletion a child zone has accepted.

    See :func:`undecided` for ``before`` and the sort order.
    """
    return _oldest(tx, zone_servers.c.state == ZoneServerState.DELETING, before, most)


def _oldest(tx: Tx, which: sa.ColumnElement[bool], before: datetime, most: int) -> list[ZoneServer]:
    query = (
        _SERVERS.where(which)
        .where(zone_servers.c.updated_at <= before)
        .order_by(zone_servers.c.updated_at, zone_servers.c.uuid)
        .limit(most)
    )
    return [ZoneServer(*row) for row in tx.execute(query)]


def changed_since(tx: Tx, state: str, since: datetime, most: int) -> list[ZoneServer]:
    """Return servers that are in a state and changed after ``since``, the latest change first."""
    query = (
        _SERVERS.where(zone_servers.c.state == state)
        .where(zone_servers.c.updated_at > since)
        .order_by(zone_servers.c.updated_at.desc(), zone_servers.c.uuid)
        .limit(most)
    )
    return [ZoneServer(*row) for row in tx.execute(query)]


def of_prefix(tx: Tx, prefix: str, after: str | None, limit: int) -> list[ZoneServer]:
    """Return servers of projects whose ids begin with ``prefix``, ordered by server id.

    Only servers with an id above ``after`` are returned.
    """
    query = _SERVERS.where(zone_servers.c.project_id.startswith(prefix, autoescape=True))
    if after is not None:
        query = query.where(zone_servers.c.uuid > after)
    query = query.order_by(zone_servers.c.uuid).limit(limit)
    return [ZoneServer(*row) for row in tx.execute(query)]


# This takes one index lookup for each child zone:
# SELECT id FROM child_zones WHERE EXISTS (SELECT * FROM zone_servers WHERE child_id = ...)
_HAS = sa.exists().where(zone_servers.c.child_id == child_zones.c.id)
_CHILDREN = Prepared(sa.select(child_zones.c.id).where(_HAS))
_CHILDREN_OF_PROJECT = Prepared(
    sa.select(child_zones.c.id).where(
        _HAS.where(zone_servers.c.project_id == sa.bindparam("project"))
    )
)


def children_of_project(tx: Tx, project_id: str | None) -> list[int]:
    """Return the row ids of the child zones with servers of a project.

    ``None`` means servers of any project.
    """
    if project_id is None:
        return [child_id for (child_id,) in _CHILDREN.rows(tx, {})]
    rows = _CHILDREN_OF_PROJECT.rows(tx, {"project": project_id})
    return [child_id for (child_id,) in rows]


def page(tx: Tx, after: ServerId | None, limit: int, child_id: int) -> list[ZoneServer]:
    """Return servers of a child zone with an id above ``after``, in the order of their ids."""
    query = _SERVERS.where(zone_servers.c.child_id == child_id)
    if after is not None:
        query = query.where(zone_servers.c.uuid > after)
    return [
        ZoneServer(*row) for row in tx.execute(query.order_by(zone_servers.c.uuid).limit(limit))
    ]


def used(tx: Tx, entry_ids: Collection[str]) -> dict[str, str | None]:
    """Return the servers that were made with these entries, by the id of the entry.

    Unused entries are left out. ``entry_ids`` may also contain ids of servers. If such a server
    must not be built, the result maps the server's id to ``None``.
    """
    return {entry_id: server_uuid for entry_id, server_uuid in _ENTRIES.rows(tx, entry_ids)}


@dataclass(frozen=True, slots=True)
class UsedEntry:
    """A used entry of a build plan, or a server that must not be built.

    For a used entry, ``id`` is the entry's id, and ``server_uuid`` is the server that was made with
    it.

    For a server that must not be built, ``id`` is the server's id, and ``server_uuid`` is ``None``.
    """

    id: str
    server_uuid: str | None
    expires_at: datetime


_USE = Prepared(used_entries.insert())


def use_many(tx: Tx, used_: Sequence[UsedEntry]) -> None:
    """Insert entries that are used, and servers that must not be built."""
    if used_:
        _USE.run(tx, [records.values(each) for each in used_])


def prune_entries(tx: Tx, now: datetime) -> int:
    """Delete expired entries, up to a maximum per call; return the number of deleted entries."""
    return pruning.delete_some(tx, used_entries, used_entries.c.expires_at <= now)
