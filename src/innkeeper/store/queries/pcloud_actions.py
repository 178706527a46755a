"""What was done to pclouds: written with the deed, and listed, the newest first."""

from __future__ import annotations

from datetime import datetime

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
)


def add(
    tx: Tx,
    pcloud_uuid: str,
    action: str,
    asker: Asker,
    now: datetime,
    *,
    host_name: str | None = None,
    detail: str | None = None,
) -> None:
    """Write what is done, in the transaction that does it."""
    tx.execute(
        pcloud_actions.insert(),
        {
            "pcloud_uuid": pcloud_uuid,
            "action": action,
            "host_name": host_name,
            "detail": detail,
            "project_id": asker.project_id,
            "user_id": asker.user_id,
            "request_id": asker.request_id,
            "created_at": now,
        },
    )


def page(tx: Tx, pcloud_uuid: str, *, before: int | None, limit: int) -> list[PcloudAction]:
    """What was done to a pcloud, the newest first, ahead of the row ``before``."""
    query = _ROWS.where(pcloud_actions.c.pcloud_uuid == pcloud_uuid)
    if before is not None:
        query = query.where(pcloud_actions.c.id < before)
    query = query.order_by(pcloud_actions.c.id.desc()).limit(limit)
    return [PcloudAction(*row) for row in tx.execute(query)]
