"""What was done to pclouds: written with the deed, and listed, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.moves import Asker
from innkeeper.domain.pclouds import PcloudAction
from innkeeper.store.tables.pclouds import pcloud_actions
from innkeeper.store.transactions import Tx

_ROWS = sa.select(
    pcloud_actions.c.id,
    pcloud_actions.c.pcloud_uuid,
    pcloud_actions.c.action,
    pcloud_actions.c.host_name,
    pcloud_actions.c.detail,
    pcloud_actions.c.project_id,
    pcloud_actions.c.user_id,
    pcloud_actions.c.request_id,
    pcloud_actions.c.created_at,
    pcloud_actions.c.owner_id,
)
PRUNED_MAX = 1000
"""Rows that are looked at, and forgotten, in one transaction, for which others wait."""


def add(
    tx: Tx,
    pcloud_uuid: str,
    owner_id: str,
    action: str,
    asker: Asker,
    now: datetime,
    *,
    host_name: str | None = None,
    detail: str | None = None,
) -> None:
    """Write what is done, in the transaction that does it, and whose the pcloud is then."""
    tx.execute(
        pcloud_actions.insert(),
        {
            "pcloud_uuid": pcloud_uuid,
            "owner_id": owner_id,
            "action": action,
            "host_name": host_name,
            "detail": detail,
            "project_id": asker.project_id,
            "user_id": asker.user_id,
            "request_id": asker.request_id,
            "created_at": now,
        },
    )


def page(
    tx: Tx, pcloud_uuid: str, *, before: int | None, limit: int, owner_id: str | None = None
) -> list[PcloudAction]:
    """What was done to a pcloud, the newest first, ahead of the row ``before``.

    With ``owner_id`` only what was done while this project owned it, or nobody knows who did.
    """
    query = _ROWS.where(pcloud_actions.c.pcloud_uuid == pcloud_uuid)
    if owner_id is not None:
        whose = pcloud_actions.c.owner_id
        query = query.where(sa.or_(whose == owner_id, whose.is_(None)))
    if before is not None:
        query = query.where(pcloud_actions.c.id < before)
    query = query.order_by(pcloud_actions.c.id.desc()).limit(limit)
    return [_action(row) for row in tx.execute(query)]


def _action(row: Sequence[Any]) -> PcloudAction:
    return PcloudAction(*row)


def prune(tx: Tx, before: datetime) -> int:
    """Forget what was done before a moment, the oldest first, some at a time; give how many.

    Rows are numbered as they are written, so nobody need look for the old ones.
    """
    oldest = sa.select(pcloud_actions.c.id).order_by(pcloud_actions.c.id).limit(PRUNED_MAX)
    rows = tx.execute(oldest).scalars().all()
    if not rows:
        return 0
    return tx.execute(
        pcloud_actions.delete()
        .where(pcloud_actions.c.id <= rows[-1])
        .where(pcloud_actions.c.created_at < before)
    ).rowcount
