"""Queries that find inconsistent volumes. On a sound database, they find nothing."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from innkeeper.domain.orders import OrderStatus
from innkeeper.domain.volumes import CONSUMER_TYPE, AttachOrigin, AttachStatus, VolumeStatus
from innkeeper.store.by_ids import Rows
from innkeeper.store.tables.compute import servers, work_orders
from innkeeper.store.tables.placement import allocations, consumers, resource_classes
from innkeeper.store.tables.volumes import volume_attachments, volume_transfers, volumes
from innkeeper.store.transactions import Tx

_HELD = sa.func.coalesce(volumes.c.growing_to_gb, volumes.c.size_gb)


def unbacked(tx: Tx) -> Rows:
    """Return volumes with wrong allocations.

    A volume on a pool must have exactly one allocation, with the right size. A volume without a
    pool must have no allocation. The rows are (uuid, expected amount, amount on the pool, number of
    allocations).
    """
    named = resource_classes.alias("named")
    is_right = (allocations.c.resource_provider_id == volumes.c.provider_id) & (
        named.c.name == volumes.c.class_name
    )
    on_pool = sa.func.coalesce(sa.func.sum(sa.case((is_right, allocations.c.used), else_=0)), 0)
    count = sa.func.count(allocations.c.id)
    wanted = sa.case((volumes.c.provider_id.is_(None), 0), else_=_HELD)
    wanted_count = sa.case((volumes.c.provider_id.is_(None), 0), else_=1)
    query = (
        sa.select(volumes.c.uuid, wanted, on_pool, count)
        .outerjoin(allocations, allocations.c.consumer_id == volumes.c.uuid)
        .outerjoin(named, named.c.id == allocations.c.resource_class_id)
        .group_by(volumes.c.uuid, volumes.c.provider_id, volumes.c.growing_to_gb, volumes.c.size_gb)
        .having((on_pool != wanted) | (count != wanted_count))
    )
    return list(tx.execute(query))


def without_volume(tx: Tx) -> Rows:
    """Return consumers that have the consumer type of volumes, but are no existing volume.

    The rows are (uuid,).
    """
    query = (
        sa.select(consumers.c.uuid)
        .outerjoin(volumes, volumes.c.uuid == consumers.c.uuid)
        .where(consumers.c.consumer_type == CONSUMER_TYPE)
        .where(volumes.c.id.is_(None))
    )
    return list(tx.execute(query))


def idle(tx: Tx, statuses: Collection[str]) -> Rows:
    """Return volumes in these statuses without a pending order, as rows of (uuid, status).

    A held order counts while the volume is attached, because the order is delivered after the
    detach.
    """
    attached = sa.select(volume_attachments.c.volume_uuid)
    is_held = (work_orders.c.status == OrderStatus.HELD) & work_orders.c.server_uuid.in_(attached)
    ordered = sa.select(work_orders.c.server_uuid).where(
        (work_orders.c.status == OrderStatus.WAITING) | is_held
    )
    query = sa.select(volumes.c.uuid, volumes.c.status)
    query = query.where(volumes.c.status.in_(sorted(statuses)))
    return list(tx.execute(query.where(volumes.c.uuid.not_in(ordered))))


def of_deleted_servers(tx: Tx) -> Rows:
    """Return attachments to deleted servers, as rows of (attachment, volume, server).

    Attachments in the status ``detaching`` are left out, since they may still wait for a host.
    """
    columns = volume_attachments.c
    query = (
        sa.select(columns.uuid, columns.volume_uuid, columns.server_uuid)
        .join(servers, servers.c.uuid == columns.server_uuid)
        .where(columns.origin == AttachOrigin.SERVER)
        .where(columns.status != AttachStatus.DETACHING)
        .where(servers.c.deleted_at.is_not(None))
    )
    return list(tx.execute(query))


def crowded(tx: Tx) -> Rows:
    """Return volumes that may have only one server but have several, as rows of (uuid, servers).

    Attachments without a server count as servers.
    """
    columns = volume_attachments.c
    users = sa.func.count(sa.distinct(sa.func.coalesce(columns.server_uuid, columns.uuid)))
    query = (
        sa.select(volumes.c.uuid, users)
        .join(volume_attachments, volume_attachments.c.volume_uuid == volumes.c.uuid)
        .where(volumes.c.is_multiattach.is_(sa.false()))
        .group_by(volumes.c.uuid)
        .having(users > 1)
    )
    return list(tx.execute(query))


def not_offered(tx: Tx) -> Rows:
    """Return volumes that wait for a transfer that does not exist, as rows of (uuid,)."""
    query = (
        sa.select(volumes.c.uuid)
        .outerjoin(volume_transfers, volume_transfers.c.volume_uuid == volumes.c.uuid)
        .where(volumes.c.status == VolumeStatus.AWAITING_TRANSFER)
        .where(volume_transfers.c.id.is_(None))
    )
    return list(tx.execute(query))


def unattached(tx: Tx, statuses: Collection[str]) -> Rows:
    """Return volumes in these statuses without an attachment, as rows of (uuid, status)."""
    query = (
        sa.select(volumes.c.uuid, volumes.c.status)
        .outerjoin(volume_attachments, volume_attachments.c.volume_uuid == volumes.c.uuid)
        .where(volumes.c.status.in_(sorted(statuses)))
        .where(volume_attachments.c.id.is_(None))
    )
    return list(tx.execute(query))
