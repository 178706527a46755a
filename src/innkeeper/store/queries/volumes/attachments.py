"""Database access for attachments of volumes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.orders import OrderKind, OrderStatus
from innkeeper.domain.volumes import Attachment, AttachOrigin
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import servers, work_orders
from innkeeper.store.tables.volumes import volume_attachments, volumes
from innkeeper.store.transactions import Tx

_ROWS = sa.select(*records.columns(volume_attachments, Attachment))
# Each detailed list of servers or volumes executes one of these queries.
_OF_SERVERS = PreparedForIds(
    _ROWS.where(volume_attachments.c.server_uuid.in_(IDS)).order_by(volume_attachments.c.id)
)
_OF_VOLUMES = PreparedForIds(
    _ROWS.where(volume_attachments.c.volume_uuid.in_(IDS)).order_by(volume_attachments.c.id)
)


def insert(tx: Tx, values: Mapping[str, Any]) -> None:
    """Insert an attachment."""
    tx.execute(volume_attachments.insert(), dict(values))


def by_uuid(tx: Tx, uuid: str) -> Attachment | None:
    """Return the attachment with this uuid."""
    return records.first(tx, _ROWS.where(volume_attachments.c.uuid == uuid), Attachment)


def of_servers(tx: Tx, uuids: Collection[str]) -> list[Attachment]:
    """Return the attachments to these servers, oldest first."""
    return [Attachment(*row) for row in _OF_SERVERS.rows(tx, sorted(set(uuids)))]


def of_volumes(tx: Tx, uuids: Collection[str]) -> list[Attachment]:
    """Return the attachments of these volumes, oldest first."""
    return [Attachment(*row) for row in _OF_VOLUMES.rows(tx, sorted(set(uuids)))]


def change(tx: Tx, attachment: Attachment, values: Mapping[str, Any]) -> None:
    """Update an attachment.

    Raises :class:`ConcurrentUpdate` if the attachment changed or was deleted.
    """
    touched = tx.execute(
        volume_attachments.update()
        .where(volume_attachments.c.id == attachment.id)
        .where(volume_attachments.c.status == attachment.status)
        .where(volume_attachments.c.updated_at == attachment.updated_at)
        .values(**values)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Attachment {attachment.uuid} was changed at the same time.")


def delete(tx: Tx, uuids: Collection[str]) -> None:
    """Delete attachments."""
    statement = volume_attachments.delete().where(volume_attachments.c.uuid.in_(IDS))
    by_ids.run(tx, statement, sorted(uuids))


def page(
    tx: Tx, project_id: str | None, exact: Mapping[str, tuple[str, ...]], after: int, limit: int
) -> list[Attachment]:
    """Return attachments of a project's volumes, or of all volumes, after a row id."""
    query = _ROWS.join(volumes, volumes.c.uuid == volume_attachments.c.volume_uuid)
    if project_id is not None:
        query = query.where(volumes.c.project_id == project_id)
    for name, values in exact.items():
        query = query.where(volume_attachments.c[name].in_(values))
    query = query.where(volume_attachments.c.id > after).order_by(volume_attachments.c.id)
    return [Attachment(*row) for row in tx.execute(query.limit(limit))]


_HAS_SERVER = sa.exists(
    sa.select(sa.literal(1))
    .where(servers.c.uuid == volume_attachments.c.server_uuid)
    .where(servers.c.deleted_at.is_(None))
)
_HAS_ORDER = sa.exists(
    sa.select(sa.literal(1))
    .where(work_orders.c.server_uuid == volume_attachments.c.server_uuid)
    .where(work_orders.c.kind.in_((OrderKind.ATTACH_VOLUME, OrderKind.DETACH_VOLUME)))
    .where(work_orders.c.status == OrderStatus.WAITING)
)


def without_server(tx: Tx, before: datetime, limit: int) -> list[Attachment]:
    """Return attachments that are older than ``before`` and whose server does not exist.

    The attachments that have not changed for the longest time come first.
    """
    query = (
        _ROWS.where(volume_attachments.c.origin == AttachOrigin.SERVER)
        .where(volume_attachments.c.created_at < before)
        .where(~_HAS_SERVER)
        .order_by(volume_attachments.c.updated_at, volume_attachments.c.id)
        .limit(limit)
    )
    return [Attachment(*row) for row in tx.execute(query)]


def stuck_since(
    tx: Tx, statuses: Collection[str], before: datetime, limit: int
) -> list[Attachment]:
    """Return attachments in these statuses that have not changed since ``before``.

    Only attachments that agents make are returned. Their servers exist, and have no waiting order
    to attach or detach a volume. The attachments that have not changed for the longest time come
    first.
    """
    query = (
        _ROWS.where(volume_attachments.c.origin == AttachOrigin.SERVER)
        .where(volume_attachments.c.status.in_(sorted(statuses)))
        .where(volume_attachments.c.updated_at < before)
        .where(_HAS_SERVER, ~_HAS_ORDER)
        .order_by(volume_attachments.c.updated_at, volume_attachments.c.id)
        .limit(limit)
    )
    return [Attachment(*row) for row in tx.execute(query)]
