"""Queries for servers in slots of reservations. A server's allocations show its slots."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Task
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import SLOT_CLASS_PREFIX, slot_class
from innkeeper.domain.moves import MigrationStatus
from innkeeper.store.tables.compute import agents, hosts, migrations, servers
from innkeeper.store.tables.placement import allocations, resource_classes
from innkeeper.store.transactions import Tx


def _in_slots(reservation: str) -> sa.Select[*tuple[Any, ...]]:
    return (
        sa.select(servers.c.uuid)
        .join(allocations, allocations.c.consumer_id == servers.c.uuid)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(resource_classes.c.name == slot_class(reservation))
        .where(servers.c.deleted_at.is_(None))
    )


def to_delete(
    tx: Tx, reservation: str, host: str | None, seen_since: datetime, most: int
) -> list[ServerId]:
    """Return servers in slots of a reservation, oldest first.

    With ``host``, return only the servers on this host. Servers that a live agent is deleting are
    left out. An agent is live if it was seen since ``seen_since`` and the host is not forced down.
    """
    query = (
        _in_slots(reservation)
        .outerjoin(hosts, hosts.c.name == servers.c.host)
        .outerjoin(agents, agents.c.id == hosts.c.agent_id)
        .where(
            servers.c.task_state.is_distinct_from(Task.DELETING)
            | hosts.c.is_forced_down.is_(sa.true())
            | (agents.c.last_seen_at < seen_since)
        )
        .order_by(servers.c.id)
        .limit(most)
    )
    if host is not None:
        query = query.where(servers.c.host == host)
    return [ServerId(uuid) for (uuid,) in tx.execute(query)]


def moved_away(tx: Tx, reservation: str, most: int) -> list[ServerId]:
    """Return servers that left slots of a reservation and can still return to them, oldest first.

    The servers' migrations keep the slots until the moves are confirmed or reverted.
    """
    # SELECT server_uuid FROM migrations JOIN allocations ... JOIN resource_classes ...
    #  WHERE name = (the class of the slots) AND status = 'finished'
    query = (
        sa.select(migrations.c.server_uuid)
        .join(allocations, allocations.c.consumer_id == migrations.c.uuid)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(resource_classes.c.name == slot_class(reservation))
        .where(migrations.c.status == MigrationStatus.FINISHED)
        .order_by(migrations.c.id)
        .limit(most)
    )
    return [ServerId(uuid) for (uuid,) in tx.execute(query)]


def everywhere(tx: Tx) -> set[ServerId]:
    """Return all servers that are in slots."""
    query = (
        sa.select(allocations.c.consumer_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(resource_classes.c.name.startswith(SLOT_CLASS_PREFIX, autoescape=True))
    )
    return {ServerId(uuid) for (uuid,) in tx.execute(query)}


def count(tx: Tx, reservation: str) -> int:
    """Return the number of servers in slots of a reservation."""
    query = sa.select(sa.func.count()).select_from(_in_slots(reservation).subquery())
    return int(tx.execute(query).scalar_one())
