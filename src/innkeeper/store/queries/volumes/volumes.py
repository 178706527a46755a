"""Database access for volumes, which are changed by compare-and-update."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.orders import OrderKind, OrderStatus
from innkeeper.domain.volumes import Volume, VolumeSelection, VolumeUsage
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import work_orders
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.tables.volumes import volume_transfers, volumes
from innkeeper.store.transactions import Tx

_ROWS = sa.select(*records.columns(volumes, Volume))
_BY_UUID = _ROWS.where(volumes.c.uuid == sa.bindparam("requested"))
_BY_UUIDS = PreparedForIds(_ROWS.where(volumes.c.uuid.in_(IDS)))
_ADD = Prepared(volumes.insert())
ROWS_PER_LOOK = 200
"""The number of rows in one query, if a predicate in Python filters the rows."""
ESCAPE = "\\"


def insert_many(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert volumes. All rows must have values for the same columns."""
    _ADD.run(tx, rows)


def by_uuid(tx: Tx, uuid: str) -> Volume | None:
    """Return the volume with this uuid."""
    return records.first(tx, _BY_UUID, Volume, requested=uuid)


def by_uuids(tx: Tx, uuids: Collection[str]) -> dict[str, Volume]:
    """Return the volumes with these uuids. Unknown uuids are ignored."""
    found = (Volume(*row) for row in _BY_UUIDS.rows(tx, sorted(set(uuids))))
    return {each.uuid: each for each in found}


def has_drop_order(tx: Tx, uuid: str) -> bool:
    """Return True if an order to delete this volume's data is waiting or held."""
    query = sa.select(work_orders.c.id).where(
        work_orders.c.server_uuid == uuid,
        work_orders.c.kind == OrderKind.DROP_VOLUME,
        work_orders.c.status.in_((OrderStatus.WAITING, OrderStatus.HELD)),
    )
    return tx.execute(query.limit(1)).first() is not None


def change(tx: Tx, volume: Volume, values: Mapping[str, Any]) -> None:
    """Update columns of a volume.

    Raises :class:`ConcurrentUpdate` if the volume changed or was deleted.
    """
    touched = tx.execute(
        volumes.update()
        .where(volumes.c.id == volume.id)
        .where(volumes.c.updated_at == volume.updated_at)
        .where(volumes.c.status == volume.status)
        .values(**values)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Volume {volume.uuid} was changed at the same time.")


def delete(tx: Tx, uuids: Collection[str]) -> None:
    """Delete the rows of volumes, and their transfers."""
    gone = sorted(uuids)
    by_ids.run(tx, volume_transfers.delete().where(volume_transfers.c.volume_uuid.in_(IDS)), gone)
    by_ids.run(tx, volumes.delete().where(volumes.c.uuid.in_(IDS)), gone)


def is_type_used(tx: Tx, type_id: int) -> bool:
    """Return whether a volume has this type."""
    query = sa.select(volumes.c.id).where(volumes.c.type_id == type_id).limit(1)
    return tx.execute(query).first() is not None


def are_on(tx: Tx, provider_id: ProviderId) -> bool:
    """Return whether a provider has volumes."""
    query = sa.select(volumes.c.id).where(volumes.c.provider_id == provider_id).limit(1)
    return tx.execute(query).first() is not None


def decision(tx: Tx, uuid: str) -> Mapping[str, Any] | None:
    """Return the scheduler's report of a volume's placement."""
    query = sa.select(volumes.c.decision).where(volumes.c.uuid == uuid)
    found: Mapping[str, Any] | None = tx.execute(query).scalar()
    return found


def pool_names(tx: Tx, ids: Collection[ProviderId]) -> dict[ProviderId, str]:
    """Return the names of these providers."""
    query = sa.select(resource_providers.c.id, resource_providers.c.name)
    rows = by_ids.rows(tx, query.where(resource_providers.c.id.in_(IDS)), sorted(set(ids)))
    return {ProviderId(provider_id): name for provider_id, name in rows}


def sums_by_pool(tx: Tx) -> dict[ProviderId, VolumeUsage]:
    """Return the number and the total size of the volumes on each pool."""
    query = (
        sa.select(volumes.c.provider_id, sa.func.count(), sa.func.sum(volumes.c.size_gb))
        .where(volumes.c.provider_id.is_not(None))
        .group_by(volumes.c.provider_id)
    )
    return {ProviderId(pool): VolumeUsage(n, int(size)) for pool, n, size in tx.execute(query)}


def count(tx: Tx, selection: VolumeSelection) -> int:
    """Return the number of volumes in a selection.

    The predicate of the selection, which runs in Python, is ignored.
    """
    query = sa.select(sa.func.count()).select_from(volumes).where(*_conditions(selection))
    return int(tx.execute(query).scalar() or 0)


def page(tx: Tx, selection: VolumeSelection, marker: Volume | None) -> list[Volume]:
    """Return up to ``selection.limit`` volumes after ``marker``, in the requested order."""
    accepts, accepted, skipped = selection.accepts, list[Volume](), 0
    while len(accepted) < selection.limit:
        rows = _rows(tx, selection, marker, ROWS_PER_LOOK if accepts else selection.limit)
        for each in rows:
            if accepts is not None and not accepts(each):
                continue
            if accepts is not None and skipped < selection.offset:
                skipped += 1
                continue
            accepted.append(each)
        if accepts is None or len(rows) < ROWS_PER_LOOK:
            break
        marker = rows[-1]
    return accepted[: selection.limit]


def _rows(tx: Tx, selection: VolumeSelection, marker: Volume | None, limit: int) -> list[Volume]:
    keys = [SortKey(_sortable(name), falls) for name, falls in selection.sort]
    keys.append(SortKey(volumes.c.id, keys[-1].is_descending if keys else True))
    query = _ROWS.where(*_conditions(selection))
    if marker is not None:
        query = query.where(rows_after(keys, _key_of(tx, keys, marker)))
    query = ordered(query, keys).limit(limit)
    if selection.offset and selection.accepts is None:
        query = query.offset(selection.offset)
    return [Volume(*row) for row in tx.execute(query)]


def _sortable(name: str) -> sa.ColumnElement[Any]:
    column: sa.ColumnElement[Any] = volumes.c[name]
    if isinstance(column.type, sa.Boolean):
        return sa.case((column, 1), else_=0)
    return sa.func.coalesce(column, "") if volumes.c[name].nullable else column


def _key_of(tx: Tx, keys: Sequence[SortKey], marker: Volume) -> Sequence[Any]:
    query = sa.select(*(key.column for key in keys)).where(volumes.c.id == marker.id)
    return tx.execute(query).one()


_COMPARED = {
    "gt": lambda column, moment: column > moment,
    "gte": lambda column, moment: column >= moment,
    "eq": lambda column, moment: column == moment,
    "neq": lambda column, moment: column != moment,
    "lt": lambda column, moment: column < moment,
    "lte": lambda column, moment: column <= moment,
}


def _conditions(selection: VolumeSelection) -> Iterator[sa.ColumnElement[bool]]:
    for name, values in selection.exact.items():
        yield volumes.c[name].in_(values)
    for name, text in selection.like.items():
        escaped = text
        for char in (ESCAPE, "%", "_"):
            escaped = escaped.replace(char, ESCAPE + char)
        yield volumes.c[name].like(f"%{escaped}%", escape=ESCAPE)
    for name, comparison, moment in selection.moments:
        yield _COMPARED[comparison](volumes.c[name], moment)


def stuck_since(tx: Tx, statuses: Collection[str], before: datetime, limit: int) -> list[Volume]:
    """Return volumes in these statuses that have not changed since ``before``."""
    query = (
        _ROWS.where(volumes.c.status.in_(sorted(statuses)))
        .where(volumes.c.updated_at < before)
        .order_by(volumes.c.id)
        .limit(limit)
    )
    return [Volume(*row) for row in tx.execute(query)]
