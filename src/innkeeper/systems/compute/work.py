"""Work orders after they were given: handed to agents, reported, timed out, forgotten.

Always true: an order ends once, and what follows from it happens in the transaction that ends
it; a report that comes twice or too late is accepted and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.compute import OrderKind, OrderStatus, Task, WorkOrder
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.store.queries import orders
from innkeeper.store.queries import servers as rows
from innkeeper.store.queries.orders import NewOrder, OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import servers
from innkeeper.systems.compute.servers import Failed

SWEEP_MAX = 500
"""The most builds that one sweep ends, and the most orders that it forgets. As many take some
sixty milliseconds, for which everybody else's writes wait."""
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


News = tuple[OpenOrder, Result]
"""An order that waited until now, and how it ended."""


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
    known = orders.waiting_among(tx, {each.order_id for each in results})
    news: list[News] = []
    told: list[tuple[int, bool]] = []
    for each in results:
        # Taken out, so that what is told twice in one breath is news once.
        order = known.pop(each.order_id, None)
        is_news = order is not None and order.agent_id == agent_id
        if is_news and order is not None:
            news.append((order, each))
        told.append((each.order_id, is_news))
    done, failed = ([o.id for o, r in news if r.is_ok is ok] for ok in (True, False))
    orders.end(tx, done, OrderStatus.DONE, now)
    orders.end(tx, failed, OrderStatus.FAILED, now)
    for part in _one_of_each_server(news):
        _follow(tx, part, now)
    return told


def _one_of_each_server(news: Sequence[News]) -> list[list[News]]:
    # What is told of one server follows in the order in which it is told.
    parts: list[list[News]] = []
    seen: dict[ServerId, int] = {}
    for order, result in news:
        turn = seen.get(order.server_uuid, 0)
        seen[order.server_uuid] = turn + 1
        if turn == len(parts):
            parts.append([])
        parts[turn].append((order, result))
    return parts


def _follow(tx: Tx, news: Sequence[News], now: datetime) -> None:
    builds = [each for each in news if each[0].kind == OrderKind.BUILD]
    destroys = [each for each in news if each[0].kind == OrderKind.DESTROY]
    servers.finish_builds(tx, {o.server_uuid: o.host for o, r in builds if r.is_ok}, now)
    servers.fail_builds(tx, _failed(builds), now)
    _finish_destroys(tx, {o.server_uuid: o.host for o, r in destroys if r.is_ok}, now)
    servers.fail_deletes(tx, _failed(destroys), now)


def _failed(news: Sequence[News]) -> list[Failed]:
    return [
        Failed(order.server_uuid, order.host, result.fault or UNEXPLAINED)
        for order, result in news
        if not result.is_ok
    ]


def _finish_destroys(tx: Tx, destroyed: Mapping[ServerId, str], now: datetime) -> None:
    # Where nobody asked to delete the server, what a failed build left was cleared away. And a
    # stray was destroyed on a host where its server does not belong; the server lives on.
    gone = [
        each.uuid
        for each in rows.alive(tx, destroyed)
        if each.task_state == Task.DELETING and each.host in (destroyed[each.uuid], None)
    ]
    servers.finish_deletes(tx, gone, now)


def sweep(tx: Tx, order_timeout_s: float, now: datetime) -> int:
    """End builds that nobody confirmed in time, and forget old orders; give their number.

    A server whose build timed out goes to ERROR and gives back what it held. Its agent may
    have built it all the same, so an order to destroy it follows. Orders to destroy have no
    time limit: a host that comes back must not keep what was deleted.
    """
    limit = now - timedelta(seconds=order_timeout_s)
    late = orders.waiting_since(tx, limit, (OrderKind.BUILD,), SWEEP_MAX)
    orders.end(tx, [each.id for each in late], OrderStatus.FAILED, now)
    messages = f"Host %s did not confirm the build in {order_timeout_s:.0f} s."
    failed = servers.fail_builds(
        tx, [Failed(each.server_uuid, each.host, messages % each.host) for each in late], now
    )
    undo = [
        NewOrder(each.agent_id, each.host, each.server_uuid, OrderKind.DESTROY, {})
        for each in late
        if each.server_uuid in failed
    ]
    orders.add(tx, undo, now)
    return len(late) + orders.prune(tx, now - timedelta(seconds=KEPT_S), SWEEP_MAX)
