"""Database access for resource properties: the names of capabilities of the freepool's hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import Overtaken
from innkeeper.domain.leases import ResourceProperty
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.leases import freepool_hosts, resource_properties
from innkeeper.store.transactions import Tx

_PROPERTIES = sa.select(*records.columns(resource_properties, ResourceProperty))
_NAMED = _PROPERTIES.where(resource_properties.c.name.in_(IDS))


def everything(tx: Tx) -> list[ResourceProperty]:
    """Return all properties, ordered by name."""
    query = _PROPERTIES.order_by(resource_properties.c.name)
    return [ResourceProperty(*row) for row in tx.execute(query)]


def named(tx: Tx, names: Collection[str]) -> dict[str, ResourceProperty]:
    """Return the properties with exactly these names, by name."""
    found = [ResourceProperty(*row) for row in by_ids.rows(tx, _NAMED, names)]
    return {each.name: each for each in found}


def add(tx: Tx, rows: Sequence[tuple[str, str]], now: datetime) -> None:
    """Add public properties. The rows are (uuid, name).

    Raises :class:`Overtaken` if another writer added one of the names at the same time.
    """
    values = [
        {"uuid": uuid, "name": name, "is_private": False, "created_at": now} for uuid, name in rows
    ]
    if not values:
        return
    try:
        tx.execute(resource_properties.insert(), values)
    except sa.exc.IntegrityError as error:
        raise Overtaken("Another writer added the same property at the same time.") from error


def set_private(tx: Tx, row: int, is_private: bool, now: datetime) -> None:
    """Make one property private or public."""
    query = resource_properties.update().where(resource_properties.c.id == row)
    tx.execute(query.values(is_private=is_private, updated_at=now))


def capabilities(tx: Tx) -> list[Mapping[str, Any]]:
    """Return the capabilities of each host of the freepool."""
    query = sa.select(freepool_hosts.c.capabilities).order_by(freepool_hosts.c.host_id)
    return list(tx.execute(query).scalars())
