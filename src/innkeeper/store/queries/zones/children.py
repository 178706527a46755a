"""Database access for child zones, and for the results of polling child zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.zone_tree import ChildState, ChildZone
from innkeeper.store import records
from innkeeper.store.tables.zones import child_zones, zone_servers
from innkeeper.store.transactions import Tx

_OWN = records.columns(child_zones, ChildZone, but=("state",))
_STATE = records.columns(child_zones, ChildState)
_CHILDREN = sa.select(*_OWN, *_STATE).order_by(child_zones.c.id)


def _child(row: Sequence[Any]) -> ChildZone:
    return ChildZone(*[*row[: len(_OWN)], ChildState(*row[len(_OWN) :])])


def add(tx: Tx, child: ChildZone) -> None:
    """Insert a child zone."""
    values = records.values(child, but=("id", "state"))
    tx.execute(child_zones.insert(), {**values, **records.values(child.state)})


def change(tx: Tx, uuid: str, **values: Any) -> bool:
    """Set columns of a child zone; return whether it exists."""
    query = child_zones.update().where(child_zones.c.uuid == uuid)
    return tx.execute(query, values).rowcount > 0


def record(tx: Tx, uuid: str, state: ChildState) -> None:
    """Set the columns that show the result of a poll."""
    change(tx, uuid, **records.values(state))


def remove(tx: Tx, uuid: str) -> None:
    """Delete a child zone."""
    tx.execute(child_zones.delete().where(child_zones.c.uuid == uuid))


def by_uuid(tx: Tx, uuid: str) -> ChildZone | None:
    """Return the child zone with this uuid."""
    row = tx.execute(_CHILDREN.where(child_zones.c.uuid == uuid)).first()
    return None if row is None else _child(row)


def every(tx: Tx) -> list[ChildZone]:
    """Return all child zones, in the order in which they were added."""
    return [_child(row) for row in tx.execute(_CHILDREN)]


def server_counts(tx: Tx) -> Mapping[int, int]:
    """Return the number of servers in each child zone, by the child's row id.

    Child zones without servers are left out.
    """
    query = sa.select(zone_servers.c.child_id, sa.func.count()).group_by(zone_servers.c.child_id)
    return {child_id: count for child_id, count in tx.execute(query)}


def has_servers(tx: Tx, child_id: int) -> bool:
    """Return whether a server is, or may be, in a child zone."""
    query = sa.select(zone_servers.c.uuid).where(zone_servers.c.child_id == child_id).limit(1)
    return tx.execute(query).first() is not None
