"""Database access for work orders.

Always true: an order is delivered again and again until it is ended, and it is ended only once. A
new order wakes the agent's pending poll when the transaction commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import AgentId, ProviderUuid, ServerId
from innkeeper.domain.orders import OrderKind, OrderStatus, WorkOrder
from innkeeper.store import by_ids, pruning, records, transactions
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import hosts, work_orders
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.transactions import Tx

TOPIC = "orders"
"""The topic under which the store's listeners receive the ids of agents."""
WITHDRAWN = "The order was withdrawn."

_WAITING_FOR = (
    sa.select(*records.columns(work_orders, WorkOrder))
    .where(work_orders.c.agent_id == sa.bindparam("agent"))
    .where(work_orders.c.status == OrderStatus.WAITING)
    .where(work_orders.c.id > sa.bindparam("after"))
    .order_by(work_orders.c.id)
    .limit(sa.bindparam("most"))
)
_WAITING_NUMBERS = (
    sa.select(work_orders.c.agent_id, work_orders.c.id)
    .where(work_orders.c.agent_id.in_(IDS))
    .where(work_orders.c.status == OrderStatus.WAITING)
)
_BY_NUMBER = (
    sa.select(*records.columns(work_orders, WorkOrder))
    .where(work_orders.c.id.in_(IDS))
    .order_by(work_orders.c.id)
)
_IS_PENDING = work_orders.c.status.in_((OrderStatus.WAITING, OrderStatus.HELD))
_PENDING_ON = (
    sa.select(work_orders.c.id, work_orders.c.host, work_orders.c.agent_id)
    .where(_IS_PENDING)
    .where(work_orders.c.host.in_(IDS))
)
_MOVE = work_orders.update().where(work_orders.c.id.in_(IDS)).where(_IS_PENDING)
_END = (
    work_orders.update()
    .where(work_orders.c.id.in_(sa.bindparam("numbers", expanding=True)))
    .where(work_orders.c.status == OrderStatus.WAITING)
    .values(status=sa.bindparam("outcome"), updated_at=sa.bindparam("now"))
)
_SET_MESSAGE = Prepared(
    work_orders.update()
    .where(work_orders.c.id == sa.bindparam("number"))
    .values(message=sa.bindparam("text"))
)


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """A waiting order, without its body.

    ``attempt`` counts the hosts that were tried, including the host of this order. ``alternates``
    are the hosts for further attempts, best first.
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


_ALL = sa.select(*records.columns(work_orders, OpenOrder))
_OPEN = _ALL.where(work_orders.c.status == OrderStatus.WAITING)
_OPEN_AMONG = _OPEN.where(work_orders.c.id.in_(IDS))


class NewOrder(msgspec.Struct, frozen=True):
    """An order that is not stored yet; see :class:`OpenOrder`.

    A held order is not delivered until :func:`deliver_held` is called.
    """

    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    body: Mapping[str, Any] = msgspec.field(default_factory=dict)
    attempt: int = 1
    alternates: Sequence[str] = ()
    request_id: str | None = None
    migration_id: int | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """An order in a server's history. ``provider_uuid`` is ``None`` if the host was deleted."""

    kind: str
    host: str
    provider_uuid: ProviderUuid | None
    status: str
    message: str | None
    request_id: str
    created_at: datetime
    updated_at: datetime


_RECORDS: sa.Select[Any] = sa.select(
    *records.columns(work_orders, OrderRecord, provider_uuid=resource_providers.c.uuid)
).select_from(
    work_orders.outerjoin(hosts, hosts.c.name == work_orders.c.host).outerjoin(
        resource_providers, resource_providers.c.id == hosts.c.provider_id
    )
)


_ADD = Prepared(work_orders.insert())


def add(tx: Tx, new: Iterable[NewOrder], now: datetime) -> None:
    """Insert orders. The commit wakes their agents."""
    rows = [
        {
            **records.values(each, but=("is_held",)),
            "body": dict(each.body),
            "alternates": list(each.alternates) or None,
            "status": OrderStatus.HELD if each.is_held else OrderStatus.WAITING,
            "created_at": now,
            "updated_at": now,
        }
        for each in new
    ]
    if rows:
        _ADD.run(tx, rows)
        awake = {str(row["agent_id"]) for row in rows if row["status"] == OrderStatus.WAITING}
        if awake:
            transactions.note(tx, TOPIC, awake)


_CLEARS = (work_orders.c.kind == OrderKind.DESTROY) & work_orders.c.migration_id.is_(None)
_HELD = work_orders.c.status == OrderStatus.HELD


def held(tx: Tx, servers: Collection[ServerId]) -> list[OpenOrder]:
    """Return the held orders for these servers, except orders to destroy the servers."""
    query = _ALL.where(_HELD, ~_CLEARS).where(work_orders.c.server_uuid.in_(IDS))
    return [OpenOrder(*row) for row in by_ids.rows(tx, query, list(servers))]


def deliver_held(tx: Tx, order: OpenOrder, body: Mapping[str, Any], now: datetime) -> None:
    """Let a held order be delivered from now on, with this body. The commit wakes its agent.

    The order gets a new number, because agents usually ask only for orders above the highest number
    that they know.
    """
    is_held = (work_orders.c.id == order.id) & (work_orders.c.status == OrderStatus.HELD)
    row = tx.execute(work_orders.select().where(is_held)).first()
    if row is None or not tx.execute(work_orders.delete().where(is_held)).rowcount:
        return
    # A column without a value stays NULL. In a column of JSON, None would be JSON's null.
    kept = {name: each for name, each in row._asdict().items() if each is not None}
    del kept["id"]
    values = {"status": OrderStatus.WAITING, "body": dict(body), "created_at": now}
    tx.execute(work_orders.insert().values(**{**kept, **values, "updated_at": now}))
    transactions.note(tx, TOPIC, {str(order.agent_id)})


def clearing(tx: Tx, servers: Collection[ServerId]) -> list[OpenOrder]:
    """Return the waiting and held orders to destroy these servers, except those of migrations."""
    pending = work_orders.c.status.in_((OrderStatus.WAITING, OrderStatus.HELD))
    query = _ALL.where(pending, _CLEARS).where(work_orders.c.server_uuid.in_(IDS))
    return [OpenOrder(*row) for row in by_ids.rows(tx, query, list(servers))]


def clearing_held_since(tx: Tx, before: datetime, limit: int) -> list[OpenOrder]:
    """Return the held destroy orders that are older than ``before``, oldest first."""
    query = _ALL.where(_HELD, work_orders.c.created_at < before, _CLEARS)
    query = query.order_by(work_orders.c.created_at, work_orders.c.id).limit(limit)
    return [OpenOrder(*row) for row in tx.execute(query)]


def drop_held(tx: Tx, order: OpenOrder, now: datetime) -> None:
    """End a held order that must not be carried out any more."""
    values = {"status": OrderStatus.FAILED, "message": WITHDRAWN, "updated_at": now}
    tx.execute(work_orders.update().where(work_orders.c.id == order.id, _HELD).values(**values))


def end_held(tx: Tx, servers: Collection[ServerId], message: str, now: datetime) -> None:
    """Mark the held orders for these servers as failed, except orders to destroy the servers.

    The remains of a failed server must still be destroyed.
    """
    by_ids.run(
        tx,
        work_orders.update()
        .where(work_orders.c.server_uuid.in_(IDS))
        .where(_HELD, ~_CLEARS)
        .values(status=OrderStatus.FAILED, message=message, updated_at=now),
        list(servers),
    )


def waiting(tx: Tx, agent_id: AgentId, after: int, limit: int) -> list[WorkOrder]:
    """Return an agent's waiting orders after the id ``after``, oldest first."""
    values = {"agent": agent_id, "after": after, "most": limit}
    return [WorkOrder(*row) for row in tx.execute(_WAITING_FOR, values)]


def waiting_after(
    tx: Tx, wanted: Mapping[AgentId, int], limit: int
) -> dict[AgentId, list[WorkOrder]]:
    """Return the waiting orders of several agents, oldest first.

    ``wanted`` maps each agent to an order id. Only orders after this id are returned, and at most
    ``limit`` orders for each agent. Agents without such orders are left out.
    """
    if len(wanted) == 1:
        ((agent_id, after),) = wanted.items()
        found = waiting(tx, agent_id, after, limit)
        return {agent_id: found} if found else {}
    # Read only the numbers first, because there may be many orders whose bodies are not needed.
    numbers: dict[AgentId, list[int]] = {}
    for agent_id, number in by_ids.rows(tx, _WAITING_NUMBERS, sorted(wanted)):
        if number > wanted[agent_id]:
            numbers.setdefault(agent_id, []).append(number)
    chosen = [number for each in numbers.values() for number in sorted(each)[:limit]]
    by_agent: dict[AgentId, list[WorkOrder]] = {}
    for row in by_ids.rows(tx, _BY_NUMBER, sorted(chosen)):
        order = WorkOrder(*row)
        by_agent.setdefault(order.agent_id, []).append(order)
    return by_agent


def newest(tx: Tx) -> int:
    """Return the id of the newest order, or 0 if there are no orders."""
    return tx.execute(sa.select(sa.func.max(work_orders.c.id))).scalar() or 0


def agents_behind(tx: Tx, after: int) -> dict[AgentId, int]:
    """Return the agents that have orders after an id, with the newest order id of each agent."""
    query = (
        sa.select(work_orders.c.agent_id, sa.func.max(work_orders.c.id))
        .where(work_orders.c.id > after)
        .group_by(work_orders.c.agent_id)
    )
    return {AgentId(agent_id): number for agent_id, number in tx.execute(query)}


def waiting_about(tx: Tx, servers: Collection[ServerId]) -> list[OpenOrder]:
    """Return the waiting orders for these servers."""
    query = _OPEN.where(work_orders.c.server_uuid.in_(list(servers)))
    return [OpenOrder(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def waiting_since(tx: Tx, before: datetime, kinds: Collection[str], limit: int) -> list[OpenOrder]:
    """Return waiting orders of these kinds that were created before ``before``, oldest first."""
    query = (
        _OPEN.where(work_orders.c.created_at < before)
        .where(work_orders.c.kind.in_(sorted(kinds)))
        .order_by(work_orders.c.created_at, work_orders.c.id)
        .limit(limit)
    )
    return [OpenOrder(*row) for row in tx.execute(query)]


def waiting_among(tx: Tx, numbers: Collection[int]) -> dict[int, OpenOrder]:
    """Return the waiting orders with these ids, by id."""
    if not numbers:
        return {}
    rows = tx.execute(_OPEN_AMONG, {"ids": list(numbers)})
    return {each.id: each for each in (OpenOrder(*row) for row in rows)}


def bodies(tx: Tx, numbers: Collection[int]) -> dict[int, Mapping[str, Any]]:
    """Return the bodies of these orders, by order id."""
    query = sa.select(work_orders.c.id, work_orders.c.body)
    found = by_ids.rows(tx, query.where(work_orders.c.id.in_(IDS)), numbers)
    return {number: body for number, body in found}


def of_requests(tx: Tx, server_uuid: ServerId, request_ids: Collection[str]) -> list[OrderRecord]:
    """Return all orders for a server that result from these requests, oldest first."""
    query = _RECORDS.where(work_orders.c.server_uuid == server_uuid)
    query = query.where(work_orders.c.request_id.in_(sorted(request_ids)))
    return [OrderRecord(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def of_migration(tx: Tx, migration_id: int, kind: str) -> list[OrderRecord]:
    """Return the orders of a kind that belong to a migration."""
    query = _RECORDS.where(work_orders.c.migration_id == migration_id)
    query = query.where(work_orders.c.kind == kind)
    return [OrderRecord(*row) for row in tx.execute(query.order_by(work_orders.c.id))]


def withdraw(tx: Tx, server_uuid: ServerId, host: str, now: datetime) -> None:
    """End the waiting orders for a server on a host, except orders to destroy the server.

    The agent may have received them already, and may still carry them out.
    """
    tx.execute(
        work_orders.update()
        .where(work_orders.c.server_uuid == server_uuid)
        .where(work_orders.c.host == host)
        .where(work_orders.c.status == OrderStatus.WAITING)
        .where(work_orders.c.kind != OrderKind.DESTROY)
        .values(status=OrderStatus.FAILED, message=WITHDRAWN, updated_at=now)
    )


def withdraw_all(tx: Tx, subject: ServerId, now: datetime) -> None:
    """End all waiting and held orders about a server or a volume."""
    tx.execute(
        work_orders.update()
        .where(work_orders.c.server_uuid == subject)
        .where(work_orders.c.status.in_((OrderStatus.WAITING, OrderStatus.HELD)))
        .values(status=OrderStatus.FAILED, message=WITHDRAWN, updated_at=now)
    )


def set_messages(tx: Tx, messages: Mapping[int, str]) -> None:
    """Store the error messages of failed orders."""
    rows = [{"number": number, "text": text} for number, text in messages.items()]
    if rows:
        _SET_MESSAGE.run(tx, rows)


def end(tx: Tx, numbers: Collection[int], outcome: str, now: datetime) -> None:
    """End waiting orders.

    Raises :class:`ConcurrentUpdate` if another transaction ended one of the orders. The caller must
    then roll back.
    """
    if not numbers:
        return
    values = {"numbers": list(numbers), "outcome": outcome, "now": now}
    if tx.execute(_END, values).rowcount != len(numbers):
        raise ConcurrentUpdate("Another transaction ended the same orders concurrently.")


def move(tx: Tx, agent_of: Mapping[str, AgentId]) -> None:
    """Assign the pending orders on each host to an agent. ``agent_of`` maps hosts to agents."""
    # Query first, because few orders change their agent. An UPDATE would lock all rows that it
    # scans.
    numbers: dict[AgentId, list[int]] = {}
    for number, host, agent_id in by_ids.rows(tx, _PENDING_ON, sorted(agent_of)):
        if agent_of[host] != agent_id:
            numbers.setdefault(agent_of[host], []).append(number)
    for agent_id, moved in sorted(numbers.items()):
        by_ids.run(tx, _MOVE.values(agent_id=agent_id), moved)
    if numbers:
        transactions.note(tx, TOPIC, set(numbers))


def prune(tx: Tx, before: datetime) -> int:
    """Delete ended orders that were created before ``before``, up to a maximum per call.

    Returns the number of deleted orders.
    """
    has_ended = work_orders.c.status.in_((OrderStatus.DONE, OrderStatus.FAILED))
    return pruning.delete_some(tx, work_orders, has_ended & (work_orders.c.created_at < before))


def awaited_hosts(tx: Tx, agent_ids: Collection[AgentId]) -> set[tuple[AgentId, str]]:
    """Return the hosts for which these agents have waiting orders, as pairs of agent and host."""
    query = (
        sa.select(work_orders.c.agent_id, work_orders.c.host)
        .where(work_orders.c.status == OrderStatus.WAITING, work_orders.c.agent_id.in_(IDS))
        .distinct()
    )
    return {(AgentId(agent_id), host) for agent_id, host in by_ids.rows(tx, query, agent_ids)}


def is_awaited(tx: Tx, agent_id: AgentId, host: str) -> bool:
    """Return whether an agent has a waiting order for a host."""
    query = (
        sa.select(work_orders.c.id)
        .where(work_orders.c.agent_id == agent_id)
        .where(work_orders.c.status == OrderStatus.WAITING)
        .where(work_orders.c.host == host)
    )
    return tx.execute(query.limit(1)).first() is not None
