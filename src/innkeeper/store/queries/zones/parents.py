"""Database access for zone parents, and for the ids of requests that they sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.zone_tree import ZoneParent
from innkeeper.store import invalidations, pruning, records
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.zones import hop_ids, zone_parents
from innkeeper.store.transactions import Tx

_PARENTS = sa.select(*records.columns(zone_parents, ZoneParent)).order_by(zone_parents.c.id)


def _parent(row: Sequence[Any]) -> ZoneParent:
    found = ZoneParent(*row)
    # The JSON columns contain lists, but the record has tuples.
    return replace(found, roles=tuple(found.roles), ancestors=tuple(found.ancestors))


def add(tx: Tx, parent: ZoneParent) -> None:
    """Insert a zone parent."""
    values = {**records.values(parent, but=("id",)), "roles": list(parent.roles)}
    values["ancestors"] = list(parent.ancestors)
    tx.execute(zone_parents.insert(), values)


def change(tx: Tx, uuid: str, **values: Any) -> bool:
    """Set columns of a zone parent; return whether it exists."""
    # Other processes may have cached the parent.
    invalidations.invalidate(tx, invalidations.IDENTITY)
    query = zone_parents.update().where(zone_parents.c.uuid == uuid)
    return tx.execute(query, values).rowcount > 0


def set_ancestors(tx: Tx, uuid: str, ancestors: Sequence[str]) -> None:
    """Set the ids of the zones above a zone parent. These ids are never cached."""
    query = zone_parents.update().where(zone_parents.c.uuid == uuid)
    tx.execute(query, {"ancestors": list(ancestors)})


def remove(tx: Tx, uuid: str) -> None:
    """Delete a zone parent."""
    invalidations.invalidate(tx, invalidations.IDENTITY)
    tx.execute(zone_parents.delete().where(zone_parents.c.uuid == uuid))


def by_uuid(tx: Tx, uuid: str) -> ZoneParent | None:
    """Return the zone parent with this uuid."""
    row = tx.execute(_PARENTS.where(zone_parents.c.uuid == uuid)).first()
    return None if row is None else _parent(row)


_BY_NAME = Prepared(_PARENTS.where(zone_parents.c.name == sa.bindparam("requested")))


def by_name(tx: Tx, name: str) -> ZoneParent | None:
    """Return the zone parent with exactly this name."""
    # Some databases ignore case in comparisons.
    rows = map(_parent, _BY_NAME.rows(tx, {"requested": name}))
    return next((each for each in rows if each.name == name), None)


def every(tx: Tx) -> list[ZoneParent]:
    """Return all zone parents, in the order in which they were added."""
    return [_parent(row) for row in tx.execute(_PARENTS)]


_SPEND = Prepared(hop_ids.insert())
_SPENT = Prepared(sa.select(hop_ids.c.id).where(hop_ids.c.id == sa.bindparam("requested")))


def spend(tx: Tx, hop_id: str, expires_at: datetime) -> None:
    """Record that the id of a request was used.

    Raises :class:`AlreadyExists` if the id was used before.
    """
    try:
        _SPEND.run(tx, [{"id": hop_id, "expires_at": expires_at}])
    except sa.exc.IntegrityError as error:
        raise AlreadyExists("The id of the request was used before.") from error


def is_spent(tx: Tx, hop_id: str) -> bool:
    """Return whether the id of a request was used before."""
    return bool(_SPENT.rows(tx, {"requested": hop_id}))


def prune(tx: Tx, now: datetime) -> int:
    """Delete expired ids of requests, up to a maximum per call.

    Returns the number of deleted ids.
    """
    return pruning.delete_some(tx, hop_ids, hop_ids.c.expires_at <= now)
