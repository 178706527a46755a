"""Work orders: added, waited for, ended.

Always true: an order is handed out until it is ended, and ended once; who adds one notes its
agent on the transaction, so that whoever waits for that agent's work is woken by the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import OrderKind, OrderStatus, WorkOrder
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import AgentId, ProviderUuid, ServerId
from innkeeper.store import by_ids, transactions
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import hosts, work_orders
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.transactions import Tx

TOPIC = "orders"
"""What listeners of the store's commits are told the agents under."""
WITHDRAWN = "It was withdrawn."

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
    work_orders.c.attempt,
    work_orders.c.alternates,
    work_orders.c.request_id,
    work_orders.c.migration_id,
).where(work_orders.c.status == OrderStatus.WAITING)
_OPEN_AMONG = _OPEN.where(work_orders.c.id.in_(sa.bindparam("numbers", expanding=True)))
_END = (
    work_orders.update()
    .where(work_orders.c.id.in_(sa.bindparam("numbers", expanding=True)))
    .where(work_orders.c.status == OrderStatus.WAITING)
    .values(status=sa.bindparam("outcome"), updated_at=sa.bindparam("now"))
)
_SAY = Prepared(
    work_orders.update()
    .where(work_orders.c.id == sa.bindparam("number"))
    .values(message=sa.bindparam("told"))
)


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that is not ended, without its body.

    ``attempt`` counts the hosts that were tried, this one included; ``alternates`` are those
    that may be tried after it, best first.
    """

    id: int
    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    attempt: int = 1
    alternates: Sequence[str] | None = None
    request_id: str | None = None
    migration_id: int | None = None


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order that is not written yet; see :class:`OpenOrder`."""

    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    alternates: Sequence[str] = ()
    request_id: str | None = None
    migration_id: int | None = None


@dataclass(frozen=True, slots=True)
class ToldOrder:
    """An order as those see it who look at what was done to a server.

    ``provider_uuid`` is the host's, as long as there is a host of that name.
    """

    kind: str
    host: str
    provider_uuid: ProviderUuid | None
    status: str
    message: str | None
    request_id: str
    created_at: datetime
    updated_at: datetime


_TOLD = sa.select(
    work_orders.c.kind,
    work_orders.c.host,
    resource_providers.c.uuid,
    work_orders.c.status,
    work_orders.c.message,
    work_orders.c.request_id,
    work_orders.c.created_at,
    work_orders.c.updated_at,
).select_from(
    work_orders.outerjoin(hosts, hosts.c.name == work_orders.c.host).outerjoin(
        resource_providers, resource_providers.c.id == hosts.c.provider_id
    )
)


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
            "attempt": each.attempt,
            "alternates": list(each.alternates) or None,
            "request_id": each.request_id,
            "migration_id": each.migration_id,
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


def newest(tx: Tx) -> int:
    """The number of the newest order; 0 before the first."""
    return tx.execute(sa.select(sa.func.max(work_orders.c.id))).scalar() or 0


def agents_behind(tx: Tx, after: int) -> dict[AgentId, int]:
    """The agents with orders behind a number, and the newest number of each."""
    query = (
        sa.select(work_orders.c.agent_id, sa.func.max(work_orders.c.id))
        .where(work_orders.c.id > after)
        .group_by(work_orders.c.agent_id)
    )
    return {AgentId(agent_id): number for agent_id, number in tx.execute(query)}


def waiting_about(tx: Tx, servers: Collection[ServerId]) -> list[OpenOrder]:
    """The orders about these servers that are not ended."""
    query = _OPEN.where(work_orders.c.server_uuid.in_(list(servers)))
    return [OpenOrder(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def waiting_since(tx: Tx, before: datetime, kinds: Collection[str], limit: int) -> list[OpenOrder]:
    """Orders of some kinds that were given before a moment and are not ended, oldest first."""
    query = (
        _OPEN.where(work_orders.c.created_at < before)
        .where(work_orders.c.kind.in_(sorted(kinds)))
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


def bodies(tx: Tx, numbers: Collection[int]) -> dict[int, Mapping[str, Any]]:
    """What these orders say, by their numbers."""
    query = sa.select(work_orders.c.id, work_orders.c.body)
    found = by_ids.rows(tx, query.where(work_orders.c.id.in_(by_ids.IDS)), numbers)
    return {number: body for number, body in found}


def of_requests(tx: Tx, server_uuid: ServerId, request_ids: Collection[str]) -> list[ToldOrder]:
    """All orders about a server that these requests led to, in the order they were given."""
    query = _TOLD.where(work_orders.c.server_uuid == server_uuid)
    query = query.where(work_orders.c.request_id.in_(sorted(request_ids)))
    return [ToldOrder(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def of_migration(tx: Tx, migration_id: int, kind: str) -> list[ToldOrder]:
    """The orders of a kind that are a part of a migration."""
    query = _TOLD.where(work_orders.c.migration_id == migration_id)
    query = query.where(work_orders.c.kind == kind)
    return [ToldOrder(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def withdraw(tx: Tx, server_uuid: ServerId, host: str, now: datetime) -> None:
    """End what a host was told about a server and has not done, but for destroying it.

    Its agent may have taken it, and then it may still be done.
    """
    tx.execute(
        work_orders.update()
        .where(work_orders.c.server_uuid == server_uuid)
        .where(work_orders.c.host == host)
        .where(work_orders.c.status == OrderStatus.WAITING)
        .where(work_orders.c.kind != OrderKind.DESTROY)
        .values(status=OrderStatus.FAILED, message=WITHDRAWN, updated_at=now)
    )


def say(tx: Tx, messages: Mapping[int, str]) -> None:
    """Write down what was said of orders that failed."""
    rows = [{"number": number, "told": text} for number, text in messages.items()]
    if rows:
        _SAY.run(tx, rows)


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


def is_awaited(tx: Tx, agent_id: AgentId, host: str) -> bool:
    """Whether an agent has something left to do on a host."""
    query = (
        sa.select(work_orders.c.id)
        .where(work_orders.c.agent_id == agent_id)
        .where(work_orders.c.status == OrderStatus.WAITING)
        .where(work_orders.c.host == host)
    )
    return tx.execute(query.limit(1)).first() is not None
