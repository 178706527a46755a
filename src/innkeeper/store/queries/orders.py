"""Work orders: added, waited for, ended.

Always true: an order is handed out until it is ended, and ended once; who adds one notes its
agent on the transaction, so that whoever waits for that agent's work is woken by the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import OrderStatus, WorkOrder
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.store import by_ids, transactions
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import work_orders
from innkeeper.store.transactions import Tx

TOPIC = "orders"
"""What listeners of the store's commits are told the agents under."""


_ORDERS = sa.select(
    work_orders.c.id,
    work_orders.c.agent_id,
    work_orders.c.host,
    work_orders.c.server_uuid,
    work_orders.c.kind,
    work_orders.c.body,
    work_orders.c.status,
    work_orders.c.created_at,
)
_WAITING_FOR = (
    _ORDERS.where(work_orders.c.agent_id == sa.bindparam("agent"))
    .where(work_orders.c.status == OrderStatus.WAITING)
    .where(work_orders.c.id > sa.bindparam("after"))
    .order_by(work_orders.c.id)
    .limit(sa.bindparam("most"))
)
_OPEN = sa.select(
    work_orders.c.id,
    work_orders.c.agent_id,
    work_orders.c.host,
    work_orders.c.server_uuid,
    work_orders.c.kind,
).where(work_orders.c.status == OrderStatus.WAITING)
_OPEN_AMONG = _OPEN.where(work_orders.c.id.in_(sa.bindparam("numbers", expanding=True)))
_END = (
    work_orders.update()
    .where(work_orders.c.id.in_(sa.bindparam("numbers", expanding=True)))
    .where(work_orders.c.status == OrderStatus.WAITING)
    .values(status=sa.bindparam("outcome"), updated_at=sa.bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that is not ended, without its body."""

    id: int
    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order that is not written yet."""

    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    body: Mapping[str, Any]


def _order(row: Sequence[Any]) -> WorkOrder:
    return WorkOrder(*row)


_ADD = Prepared(work_orders.insert())


def add(tx: Tx, new: Iterable[NewOrder], now: datetime) -> None:
    """Write orders; their agents are woken when the transaction is committed."""
    rows = [
        {
            "agent_id": each.agent_id,
            "host": each.host,
            "server_uuid": each.server_uuid,
            "kind": each.kind,
            "body": dict(each.body),
            "status": OrderStatus.WAITING,
            "created_at": now,
            "updated_at": now,
        }
        for each in new
    ]
    if rows:
        _ADD.run(tx, rows)
        transactions.note(tx, TOPIC, {str(row["agent_id"]) for row in rows})


def waiting(tx: Tx, agent_id: AgentId, after: int, limit: int) -> list[WorkOrder]:
    """An agent's orders that are not ended, oldest first, behind the number ``after``."""
    values = {"agent": agent_id, "after": after, "most": limit}
    return [_order(row) for row in tx.execute(_WAITING_FOR, values)]


def waiting_about(tx: Tx, servers: Collection[ServerId]) -> list[OpenOrder]:
    """The orders about these servers that are not ended."""
    query = _OPEN.where(work_orders.c.server_uuid.in_(list(servers)))
    return [OpenOrder(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def waiting_since(tx: Tx, before: datetime, kind: str, limit: int) -> list[OpenOrder]:
    """Orders of a kind that were given before a moment and are not ended, oldest first."""
    query = (
        _OPEN.where(work_orders.c.created_at < before)
        .where(work_orders.c.kind == kind)
        .order_by(work_orders.c.created_at, work_orders.c.id)
        .limit(limit)
    )
    return [OpenOrder(*row) for row in tx.execute(query)]


def waiting_among(tx: Tx, numbers: Collection[int]) -> dict[int, OpenOrder]:
    """The orders among these numbers that are not ended."""
    if not numbers:
        return {}
    found = [OpenOrder(*row) for row in tx.execute(_OPEN_AMONG, {"numbers": list(numbers)})]
    return {each.id: each for each in found}


def end(tx: Tx, numbers: Collection[int], outcome: str, now: datetime) -> None:
    """End orders that wait.

    Raises :class:`ConcurrentUpdate` if somebody else ended one of them; the caller rolls back.
    """
    if not numbers:
        return
    values = {"numbers": list(numbers), "outcome": outcome, "now": now}
    if tx.execute(_END, values).rowcount != len(numbers):
        raise ConcurrentUpdate("Somebody else ended the same orders in between.")


def move(tx: Tx, names: Collection[str], agent_id: AgentId) -> None:
    """Give the waiting orders of these hosts to the agent that speaks for them now."""
    others = (
        sa.select(work_orders.c.id)
        .where(work_orders.c.status == OrderStatus.WAITING)
        .where(work_orders.c.host.in_(list(names)))
        .where(work_orders.c.agent_id != agent_id)
    )
    # Looked for first, since there are seldom any: an UPDATE would lock all that it passes.
    numbers = list(tx.execute(others).scalars())
    for part in by_ids.parts(numbers):
        tx.execute(
            work_orders.update()
            .where(work_orders.c.id.in_(part))
            .where(work_orders.c.status == OrderStatus.WAITING)
            .values(agent_id=agent_id)
        )
    if numbers:
        transactions.note(tx, TOPIC, {agent_id})


def prune(tx: Tx, before: datetime, limit: int) -> int:
    """Drop orders that were ended and are older than a moment, at most ``limit`` of them."""
    old = (
        sa.select(work_orders.c.id)
        .where(work_orders.c.status.in_((OrderStatus.DONE, OrderStatus.FAILED)))
        .where(work_orders.c.created_at < before)
        .limit(limit)
    )
    numbers = list(tx.execute(old).scalars())
    if numbers:
        tx.execute(work_orders.delete().where(work_orders.c.id.in_(numbers)))
    return len(numbers)
