"""Database access for the actions on pclouds."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import PcloudAction
from innkeeper.store import pruning, records
from innkeeper.store.tables.pclouds import pcloud_actions
from innkeeper.store.transactions import Tx

_ACTIONS = sa.select(*records.columns(pcloud_actions, PcloudAction))


def add(
    tx: Tx,
    pcloud_uuid: str,
    owner_id: str,
    action: str,
    initiator: Initiator,
    now: datetime,
    *,
    host_name: str | None = None,
    detail: str | None = None,
) -> None:
    """Record an action in the transaction that performs it.

    ``owner_id`` is the owner after the action.
    """
    tx.execute(
        pcloud_actions.insert(),
        {
            "pcloud_uuid": pcloud_uuid,
            "owner_id": owner_id,
            "action": action,
            "host_name": host_name,
            "detail": detail,
            "project_id": initiator.project_id,
            "user_id": initiator.user_id,
            "request_id": initiator.request_id,
            "created_at": now,
        },
    )


def page(
    tx: Tx, pcloud_uuid: str, *, before: int | None, limit: int, owner_id: str | None = None
) -> list[PcloudAction]:
    """Return the actions on a pcloud before the row ``before``, newest first.

    With ``owner_id``, return only the actions after which this project owned the pcloud. Actions
    without a recorded owner are included.
    """
    query = _ACTIONS.where(pcloud_actions.c.pcloud_uuid == pcloud_uuid)
    if owner_id is not None:
        owner = pcloud_actions.c.owner_id
        query = query.where(sa.or_(owner == owner_id, owner.is_(None)))
    if before is not None:
        query = query.where(pcloud_actions.c.id < before)
    query = query.order_by(pcloud_actions.c.id.desc()).limit(limit)
    return [PcloudAction(*row) for row in tx.execute(query)]


def prune(tx: Tx, before: datetime) -> int:
    """Delete actions before ``before``, up to a maximum per call.

    Returns the number of deleted actions.
    """
    oldest = sa.select(pcloud_actions.c.id).order_by(pcloud_actions.c.id).limit(pruning.ROWS_MAX)
    rows = tx.execute(oldest).scalars().all()
    if not rows:
        return 0
    return tx.execute(
        pcloud_actions.delete()
        .where(pcloud_actions.c.id <= rows[-1])
        .where(pcloud_actions.c.created_at < before)
    ).rowcount
