"""Database access for transfers of volumes between projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.volumes import VolumeTransfer
from innkeeper.store import records
from innkeeper.store.tables.volumes import volume_transfers
from innkeeper.store.transactions import Tx

_ROWS = sa.select(*records.columns(volume_transfers, VolumeTransfer))


def insert(tx: Tx, values: Mapping[str, Any]) -> None:
    """Insert a transfer."""
    tx.execute(volume_transfers.insert(), dict(values))


def by_uuid(tx: Tx, uuid: str) -> VolumeTransfer | None:
    """Return the transfer with this uuid."""
    return records.first(tx, _ROWS.where(volume_transfers.c.uuid == uuid), VolumeTransfer)


def of_volume(tx: Tx, volume_uuid: str) -> VolumeTransfer | None:
    """Return the transfer of a volume."""
    query = _ROWS.where(volume_transfers.c.volume_uuid == volume_uuid)
    return records.first(tx, query, VolumeTransfer)


def page(tx: Tx, project_id: str | None, after: int, limit: int) -> list[VolumeTransfer]:
    """Return the transfers that a project offers, or all transfers, after a row id."""
    query = _ROWS.where(volume_transfers.c.id > after)
    if project_id is not None:
        query = query.where(volume_transfers.c.project_id == project_id)
    rows = tx.execute(query.order_by(volume_transfers.c.id).limit(limit))
    return [VolumeTransfer(*row) for row in rows]


def delete(tx: Tx, transfer_id: int) -> bool:
    """Delete a transfer. Return whether the transfer existed."""
    statement = volume_transfers.delete().where(volume_transfers.c.id == transfer_id)
    return tx.execute(statement).rowcount == 1
