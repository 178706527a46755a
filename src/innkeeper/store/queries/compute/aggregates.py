"""Database access for aggregates, which are named sets of hosts with metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.grouping import Aggregate
from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import aggregate_hosts, aggregates, hosts
from innkeeper.store.transactions import Tx

_MEMBERSHIPS = sa.select(hosts.c.provider_id, aggregate_hosts.c.aggregate_id).join(
    aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id
)
_MEMBERSHIPS_OF = PreparedForIds(_MEMBERSHIPS.where(hosts.c.provider_id.in_(IDS)))
_METADATA = sa.select(aggregates.c.id, aggregates.c.metadata)
_METADATA_OF = _METADATA.where(aggregates.c.id.in_(IDS))


def for_snapshot(
    tx: Tx, provider_ids: Collection[ProviderId] | None
) -> list[tuple[ProviderId, int]]:
    """Return pairs of (host's provider, aggregate's row id).

    ``None`` selects the hosts on all providers.
    """
    if provider_ids is None:
        rows = tx.execute(_MEMBERSHIPS).fetchall()
    else:
        rows = _MEMBERSHIPS_OF.rows(tx, provider_ids)
    return [(ProviderId(provider_id), aggregate_id) for provider_id, aggregate_id in rows]


def metadata_of(tx: Tx, ids: Collection[int] | None) -> dict[int, Mapping[str, str]]:
    """Return the metadata of the aggregates with these row ids, or of all aggregates."""
    rows = tx.execute(_METADATA) if ids is None else by_ids.rows(tx, _METADATA_OF, ids)
    return {aggregate_id: metadata for aggregate_id, metadata in rows}


_AGGREGATES = sa.select(*records.columns(aggregates, Aggregate, but=("hosts",)))
_BY_ROW = _AGGREGATES.where(aggregates.c.id == sa.bindparam("requested"))
_BY_UUID = Prepared(
    sa.select(aggregates.c.id).where(aggregates.c.uuid == sa.bindparam("aggregate"))
)
_ADD_HOSTS = Prepared(aggregate_hosts.insert())
_HOST_NAMES = (
    sa.select(aggregate_hosts.c.aggregate_id, hosts.c.name)
    .join(hosts, hosts.c.id == aggregate_hosts.c.host_id)
    .order_by(aggregate_hosts.c.aggregate_id, hosts.c.id)
)
# SELECT host_id, aggregates.* FROM aggregate_hosts JOIN aggregates ... WHERE host_id IN (...)
_OF_HOSTS = (
    _AGGREGATES.add_columns(aggregate_hosts.c.host_id)
    .join(aggregate_hosts, aggregate_hosts.c.aggregate_id == aggregates.c.id)
    .where(aggregate_hosts.c.host_id.in_(IDS))
    .order_by(aggregates.c.id)
)


def _aggregate(row: Sequence[Any], names: Sequence[str]) -> Aggregate:
    row_id, uuid, name, metadata, created_at, updated_at, kind = row
    return Aggregate(row_id, uuid, name, metadata, tuple(names), created_at, updated_at, kind)


def add(
    tx: Tx,
    uuid: str,
    name: str,
    metadata: Mapping[str, str],
    now: datetime,
    kind: str | None = None,
) -> int:
    """Insert an aggregate without hosts; return its row id."""
    row = {"uuid": uuid, "name": name, "metadata": dict(metadata), "kind": kind}
    moments = {"created_at": now, "updated_at": now}
    key = tx.execute(aggregates.insert(), {**row, **moments}).inserted_primary_key
    assert key is not None, "an inserted row has a key"
    return int(key[0])


def by_row(tx: Tx, aggregate_id: int) -> Aggregate | None:
    """Return the aggregate with this row id."""
    row = tx.execute(_BY_ROW, {"requested": aggregate_id}).first()
    if row is None:
        return None
    names = tx.execute(_HOST_NAMES.where(aggregate_hosts.c.aggregate_id == aggregate_id))
    return _aggregate(row, [name for _, name in names])


def by_uuid(tx: Tx, uuid: str) -> int | None:
    """Return the row id of the aggregate with this uuid."""
    return next((row for (row,) in _BY_UUID.rows(tx, {"aggregate": uuid})), None)


def uuid_of(tx: Tx, aggregate_id: int) -> str | None:
    """Return the uuid of the aggregate with this row id."""
    query = sa.select(aggregates.c.uuid).where(aggregates.c.id == aggregate_id)
    return tx.execute(query).scalar()


def listing(tx: Tx) -> list[Aggregate]:
    """Return all aggregates, oldest first."""
    names: dict[int, list[str]] = {}
    for aggregate_id, name in tx.execute(_HOST_NAMES):
        names.setdefault(aggregate_id, []).append(name)
    rows = tx.execute(_AGGREGATES.order_by(aggregates.c.id))
    return [_aggregate(row, names.get(row.id, ())) for row in rows]


@dataclass(frozen=True, slots=True)
class Member:
    """A host in an aggregate."""

    host_id: int
    name: str
    provider_id: ProviderId
    availability_zone: str


def members(tx: Tx, aggregate_id: int) -> list[Member]:
    """Return the hosts in an aggregate, oldest first."""
    query = (
        sa.select(hosts.c.id, hosts.c.name, hosts.c.provider_id, hosts.c.availability_zone)
        .join(aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id)
        .where(aggregate_hosts.c.aggregate_id == aggregate_id)
        .order_by(hosts.c.id)
    )
    return [Member(*row) for row in tx.execute(query)]


def of_hosts(tx: Tx, host_ids: Collection[int]) -> list[tuple[int, Aggregate]]:
    """Return pairs of (host's row id, aggregate).

    The field ``hosts`` of each aggregate is empty.
    """
    rows = by_ids.rows(tx, _OF_HOSTS, host_ids)
    return [(host_id, _aggregate(row, ())) for *row, host_id in rows]


def is_name_taken(tx: Tx, name: str, but_by: int | None = None) -> bool:
    """Return whether an aggregate has this name. The aggregate ``but_by`` does not count."""
    query = sa.select(aggregates.c.id).where(aggregates.c.name == name)
    if but_by is not None:
        query = query.where(aggregates.c.id != but_by)
    return tx.execute(query.limit(1)).first() is not None


def change(
    tx: Tx, aggregate_id: int, name: str, metadata: Mapping[str, str], now: datetime
) -> None:
    """Replace an aggregate's name and metadata."""
    tx.execute(
        aggregates.update()
        .where(aggregates.c.id == aggregate_id)
        .values(name=name, metadata=dict(metadata), updated_at=now)
    )


def remove(tx: Tx, aggregate_id: int) -> None:
    """Delete an aggregate, which must have no hosts."""
    tx.execute(aggregates.delete().where(aggregates.c.id == aggregate_id))


def add_hosts(tx: Tx, aggregate_id: int, host_ids: Collection[int]) -> None:
    """Add hosts to an aggregate."""
    rows = [{"aggregate_id": aggregate_id, "host_id": each} for each in host_ids]
    if rows:
        _ADD_HOSTS.run(tx, rows)


def remove_hosts(tx: Tx, aggregate_id: int, host_ids: Collection[int]) -> None:
    """Remove hosts from an aggregate."""
    those = aggregate_hosts.delete().where(aggregate_hosts.c.aggregate_id == aggregate_id)
    by_ids.run(tx, those.where(aggregate_hosts.c.host_id.in_(IDS)), host_ids)
