"""Work orders after they were given: handed to agents, reported, timed out, forgotten.

Always true: an order ends once, and what follows from it happens in the transaction that ends
it; a report that comes twice or too late is accepted and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.compute import OrderKind, OrderStatus, Power, Status, Task, WorkOrder
from innkeeper.domain.ids import AgentId
from innkeeper.store.queries import orders
from innkeeper.store.queries import servers as rows
from innkeeper.store.queries.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import servers

SWEEP_MAX = 500
"""Orders that one sweep ends or forgets, so that it does not hold up the others' writes."""
KEPT_S = 24 * 3600.0
"""How long an order that ended is kept, for whoever looks into what happened."""
UNEXPLAINED = "The agent failed and did not say why."
TOPIC = orders.TOPIC
"""Under which a commit notes the agents that it has orders for."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an agent says of an order."""

    order_id: int
    is_ok: bool
    fault: str = ""


def waiting(tx: Tx, agent_id: AgentId, after: int, limit: int) -> list[WorkOrder]:
    """An agent's orders, oldest first; each is given again until its result is reported."""
    return orders.waiting(tx, agent_id, after, limit)


def settle(
    tx: Tx, agent_id: AgentId, results: Sequence[Result], now: datetime
) -> list[tuple[int, bool]]:
    """Take an agent's results; gives each order's number, and whether the result was news.

    Results about orders that are not this agent's, that do not exist or that ended before are
    no news.
    """
    known = orders.by_numbers(tx, {each.order_id for each in results})
    told: list[tuple[int, bool]] = []
    for each in results:
        order = known.get(each.order_id)
        is_news = (
            order is not None
            and order.agent_id == agent_id
            and orders.end(tx, order.id, _outcome(each), now)
        )
        if is_news and order is not None:
            _follow(tx, order, each, now)
        told.append((each.order_id, is_news))
    return told


def _outcome(result: Result) -> str:
    return OrderStatus.DONE if result.is_ok else OrderStatus.FAILED


def _follow(tx: Tx, order: WorkOrder, result: Result, now: datetime) -> None:
    if order.kind == OrderKind.BUILD and result.is_ok:
        servers.finish_build(tx, order.server_uuid, now, order.host)
    elif order.kind == OrderKind.BUILD:
        message = result.fault or UNEXPLAINED
        servers.fail_build(tx, order.server_uuid, message, now, order.host)
    elif result.is_ok:
        _finish_destroy(tx, order, now)
    else:
        _fail_destroy(tx, order, result.fault or UNEXPLAINED, now)


def _finish_destroy(tx: Tx, order: WorkOrder, now: datetime) -> None:
    server = rows.by_uuid(tx, order.server_uuid)
    if server is None or server.task_state != Task.DELETING:
        # Nobody asked to delete the server: what a failed build left was cleared away.
        return
    # A stray was destroyed on a host where its server does not belong; the server lives on.
    if server.host in (order.host, None):
        servers.finish_delete(tx, order.server_uuid, now)


def _fail_destroy(tx: Tx, order: WorkOrder, message: str, now: datetime) -> None:
    # The server is still there and still holds its allocation. Deleting it again tries again.
    server = rows.by_uuid(tx, order.server_uuid)
    if server is None or server.host != order.host:
        return
    values = {
        "status": Status.ERROR,
        "task_state": None,
        "power_state": Power.NO_STATE,
        "fault": servers.fault(message, now),
        "updated_at": now,
    }
    rows.change(tx, server.uuid, server.updated_at, values)


def sweep(tx: Tx, order_timeout_s: float, now: datetime) -> int:
    """End builds that nobody confirmed in time, and forget old orders; give their number.

    A server whose build timed out goes to ERROR and gives back what it held. Its agent may
    have built it all the same, so an order to destroy it follows. Orders to destroy have no
    time limit: a host that comes back must not keep what was deleted.
    """
    limit = now - timedelta(seconds=order_timeout_s)
    late = orders.waiting_since(tx, limit, OrderKind.BUILD, SWEEP_MAX)
    for order in late:
        if not orders.end(tx, order.id, OrderStatus.FAILED, now):
            continue
        message = f"Host {order.host} did not confirm the build in {order_timeout_s:.0f} s."
        if servers.fail_build(tx, order.server_uuid, message, now, order.host):
            undo = NewOrder(
                order.agent_id, order.host, order.server_uuid, OrderKind.DESTROY, {}
            )
            orders.add(tx, [undo], now)
    return len(late) + orders.prune(tx, now - timedelta(seconds=KEPT_S), SWEEP_MAX)
