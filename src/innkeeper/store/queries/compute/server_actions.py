"""Database access for the actions on servers, and for the last decision about each server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Action, Initiator
from innkeeper.store import records
from innkeeper.store.tables.compute import server_actions, servers
from innkeeper.store.transactions import Tx

_ACTIONS = sa.select(
    *records.columns(server_actions, Action, but=("events", "counted")),
    server_actions.c.counted_message,
)
_DECISION = sa.select(servers.c.decision).where(servers.c.uuid == sa.bindparam("requested"))


def add(tx: Tx, server_uuid: ServerId, action: str, initiator: Initiator, now: datetime) -> None:
    """Record the start of an action."""
    tx.execute(
        server_actions.insert(),
        {
            "server_uuid": server_uuid,
            "action": action,
            "request_id": initiator.request_id,
            "project_id": initiator.project_id,
            "user_id": initiator.user_id,
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
    """Record that an action continued or ended. With ``message``, record that it failed.

    ``counted`` (see :class:`Action`) is stored only if it differs from ``message``.
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
    """Return all actions of a server, oldest first."""
    query = _ACTIONS.where(server_actions.c.server_uuid == server_uuid)
    rows = tx.execute(query.order_by(server_actions.c.id))
    return [replace(Action(*fields), counted=counted) for *fields, counted in rows]


def decision(tx: Tx, server_uuid: str) -> Mapping[str, Any] | None:
    """Return the record of the last decision about a server, which may be deleted."""
    # Not part of the queries of servers, since lists of servers do not need the record.
    found: Mapping[str, Any] | None = tx.execute(_DECISION, {"requested": server_uuid}).scalar()
    return found


def creation(tx: Tx, server_uuid: str) -> tuple[Any, ...] | None:
    """Return a server's request, project, user, fault, creation time and launch time.

    The server may be deleted.
    """
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
