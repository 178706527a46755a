"""What was done to servers: written when it begins, found by server and request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Action, Asker
from innkeeper.store.tables.compute import server_actions, servers
from innkeeper.store.transactions import Tx

_ROWS = sa.select(
    server_actions.c.server_uuid,
    server_actions.c.action,
    server_actions.c.request_id,
    server_actions.c.project_id,
    server_actions.c.user_id,
    server_actions.c.message,
    server_actions.c.created_at,
    server_actions.c.updated_at,
    server_actions.c.counted_message,
)


def _action(row: Sequence[Any]) -> Action:
    return replace(Action(*row[:-1]), counted=row[-1])


def add(tx: Tx, server_uuid: ServerId, action: str, asker: Asker, now: datetime) -> None:
    """Write that something begins."""
    tx.execute(
        server_actions.insert(),
        {
            "server_uuid": server_uuid,
            "action": action,
            "request_id": asker.request_id,
            "project_id": asker.project_id,
            "user_id": asker.user_id,
            "created_at": now,
            "updated_at": now,
        },
    )


def end(
    tx: Tx,
    server_uuid: ServerId,
    request_id: str,
    message: str | None,
    now: datetime,
    counted: str | None = None,
) -> None:
    """Write that something goes on or ends; with a message, that it did not work.

    ``counted`` is the message with numbers of hosts, for administrators. It is kept where it
    differs.
    """
    values: dict[str, Any] = {"updated_at": now}
    if message is not None:
        values["message"] = message
        values["counted_message"] = None if counted == message else counted
    tx.execute(
        server_actions.update()
        .where(server_actions.c.server_uuid == server_uuid)
        .where(server_actions.c.request_id == request_id)
        .values(**values)
    )


def of_server(tx: Tx, server_uuid: str) -> list[Action]:
    """All that was done to a server, oldest first."""
    query = _ROWS.where(server_actions.c.server_uuid == server_uuid)
    return [_action(row) for row in tx.execute(query.order_by(server_actions.c.id))]


def creation(tx: Tx, server_uuid: str) -> tuple[Any, ...] | None:
    """Of a server, deleted or not: request, project, user, fault, and when it came to be."""
    query = sa.select(
        servers.c.request_id,
        servers.c.project_id,
        servers.c.user_id,
        servers.c.fault,
        servers.c.created_at,
        servers.c.launched_at,
    ).where(servers.c.uuid == server_uuid)
    row = tx.execute(query).first()
    return None if row is None else tuple(row)
