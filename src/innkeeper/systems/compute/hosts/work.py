"""Deliver work orders to agents, apply their results, and end and delete old orders.

Always true: an order ends once, and its result is applied in the transaction that ends it. A
repeated or late result is accepted, but has no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.compute import Agent
from innkeeper.domain.errors import Refusal
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.orders import OrderKind, OrderStatus, WorkOrder
from innkeeper.store.queries.compute import agents as agent_rows
from innkeeper.store.queries.compute import orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import agents
from innkeeper.systems.compute.moves import (
    cleanup,
    cold_migration,
    evacuation,
    live,
    migrations,
    shelving,
)
from innkeeper.systems.compute.servers import attaching, builds, force_detaching, power
from innkeeper.systems.compute.servers.results import (
    Apply,
    Ended,
    Result,
    ResultSettings,
    one_by_one,
)

SWEEP_MAX = 500
"""The maximum number of orders that one sweep ends. Ending 500 builds takes up to 0.2 s, during
which all other writes wait."""
FAILURE_LINES = 4
"""The weight of a failed result. A successful result has the weight 1. After a failed build, the
server, its allocations and its order move to another host. A failed build takes four to eight times
as long as a successful build."""
KEPT_S = 24 * 3600.0
"""The number of seconds for which an ended order is kept as history."""
TOPIC = orders.TOPIC
"""The topic on which a commit publishes the agents that have new orders."""

APPLY: Mapping[str, Apply] = {
    OrderKind.BUILD: builds.apply,
    OrderKind.DESTROY: cleanup.apply,
    **dict.fromkeys(sorted(power.KINDS), one_by_one(power.apply)),
    OrderKind.DEPART: one_by_one(cold_migration.apply_depart),
    OrderKind.ARRIVE: one_by_one(cold_migration.apply_arrive),
    OrderKind.RETURN: one_by_one(cold_migration.apply_return),
    OrderKind.RESIZE: one_by_one(cold_migration.apply_resize),
    OrderKind.EXPECT: one_by_one(live.apply_expect),
    OrderKind.SEND: one_by_one(live.apply_send),
    OrderKind.ABORT: one_by_one(migrations.apply_request),
    OrderKind.HURRY: one_by_one(migrations.apply_request),
    OrderKind.EVACUATE: one_by_one(evacuation.apply),
    OrderKind.SHELVE: one_by_one(shelving.apply_shelve),
    OrderKind.OFFLOAD: one_by_one(shelving.apply_offload),
    OrderKind.UNSHELVE: one_by_one(shelving.apply_unshelve),
    OrderKind.MAKE_VOLUME: attaching.apply_makes,
    OrderKind.GROW_VOLUME: one_by_one(attaching.apply_grow),
    OrderKind.DROP_VOLUME: one_by_one(attaching.apply_drop),
    OrderKind.ATTACH_VOLUME: one_by_one(attaching.apply_attach),
    OrderKind.DETACH_VOLUME: one_by_one(attaching.apply_detach),
}
"""The function that applies the results of each kind of order. The functions for builds, for
deletions and for new volumes get many results, and apply them together."""
ENDLESS = frozenset(
    {
        OrderKind.DESTROY,
        OrderKind.OFFLOAD,
        OrderKind.SEND,
        OrderKind.DROP_VOLUME,
        OrderKind.DETACH_VOLUME,
    }
)
"""The orders that do not time out. A host that comes up again must still destroy deleted servers,
and delete and detach volumes. An order to send a server in a live migration does not time out
either, because only the source knows where the server is."""
TIMED = frozenset(APPLY) - ENDLESS

# Queries that are re-exported unchanged.
waiting = orders.waiting
newest = orders.newest


def given_since(tx: Tx, last: int) -> tuple[int, frozenset[str]]:
    """Return the number of the newest order, and the agents with orders after number ``last``.

    If no order is newer, return ``last`` and no agents.
    """
    behind = orders.agents_behind(tx, last)
    return max(behind.values(), default=last), frozenset(behind)


@dataclass(frozen=True, slots=True)
class Poll:
    """An agent's request for at most ``limit`` waiting orders with ids above ``after``."""

    context: RequestContext
    agent_id: str
    after: int
    limit: int


def polled(tx: Tx, polls: Sequence[Poll]) -> list[list[WorkOrder] | Refusal]:
    """Return the orders for each poll, oldest first. An order is returned until it is ended.

    The answer may be a :class:`NotFound`, as in :func:`agents.own`.
    """
    found = agents.own_together(tx, [(each.context, each.agent_id) for each in polls])
    answers: list[list[WorkOrder] | Refusal] = []
    # An agent sends one poll at a time, so polls of one agent with different limits are rare.
    limit = max(each.limit for each in polls)
    wanted: dict[AgentId, int] = {}
    for poll, agent in zip(polls, found, strict=True):
        if isinstance(agent, Agent):
            wanted[agent.id] = min(poll.after, wanted.get(agent.id, poll.after))
    waiting = orders.waiting_after(tx, wanted, limit)
    for poll, agent in zip(polls, found, strict=True):
        if isinstance(agent, Refusal):
            answers.append(agent)
            continue
        due = [each for each in waiting.get(agent.id, ()) if each.id > poll.after]
        answers.append(due[: poll.limit])
    return answers


@dataclass(frozen=True, slots=True)
class ResultsReport:
    """The results that an agent reports in one request."""

    context: RequestContext
    agent_id: str
    results: Sequence[Result]
    now: datetime
    settings: ResultSettings


def line_count(results: Sequence[Result]) -> int:
    """Estimate how many rows these results change.

    The engine limits the total for each transaction.
    """
    return sum(1 if each.is_ok else FAILURE_LINES for each in results)


Recorded = list[tuple[int, bool]]
"""Pairs of (order number, whether its result is new)."""


def record_together(tx: Tx, reports: Sequence[ResultsReport]) -> list[Recorded | Refusal]:
    """Apply the results of several agents, with the same effect as calls of :func:`record`.

    The answer to a report may be a :class:`NotFound`, as in :func:`agents.own`.
    """
    found = agents.own_together(tx, [(each.context, each.agent_id) for each in reports])
    accepted = [
        (agent.id, report.results)
        for agent, report in zip(found, reports, strict=True)
        if isinstance(agent, Agent)
    ]
    # All reports have the same settings, because these are settings of the service.
    now = max(each.now for each in reports)
    recorded = iter(_record(tx, accepted, now, reports[0].settings))
    return [each if isinstance(each, Refusal) else next(recorded) for each in found]


def record(
    tx: Tx,
    agent_id: AgentId,
    results: Sequence[Result],
    now: datetime,
    settings: ResultSettings = ResultSettings(),  # noqa: B008 - frozen
) -> Recorded:
    """Apply an agent's results. Return pairs of (order number, whether its result is new).

    A result is not new if the order belongs to another agent, does not exist, or has ended.
    """
    (recorded,) = _record(tx, [(agent_id, results)], now, settings)
    return recorded


def _record(
    tx: Tx,
    reports: Sequence[tuple[AgentId, Sequence[Result]]],
    now: datetime,
    settings: ResultSettings,
) -> list[Recorded]:
    numbers = {each.order_id for _, results in reports for each in results}
    known = orders.waiting_among(tx, numbers)
    ended: list[Ended] = []
    answers: list[Recorded] = []
    for agent_id, results in reports:
        recorded: Recorded = []
        for each in results:
            order = known.get(each.order_id)
            is_new = order is not None and order.agent_id == agent_id
            if order is not None and is_new:
                # The order is removed, so that only its first result counts as new.
                del known[each.order_id]
                ended.append((order, each))
            recorded.append((each.order_id, is_new))
        answers.append(recorded)
    _end(tx, ended, settings, now)
    return answers


def _end(tx: Tx, reported: Sequence[Ended], settings: ResultSettings, now: datetime) -> None:
    done, failed = ([o.id for o, r in reported if r.is_ok is ok] for ok in (True, False))
    orders.end(tx, done, OrderStatus.DONE, now)
    orders.end(tx, failed, OrderStatus.FAILED, now)
    orders.set_messages(tx, {order.id: each.message for order, each in reported if not each.is_ok})
    for part in _one_per_server(reported):
        for kind, apply in APPLY.items():
            alike = [each for each in part if each[0].kind == kind]
            if alike:
                apply(tx, alike, settings, now)


def _one_per_server(reported: Sequence[Ended]) -> list[list[Ended]]:
    """Split results into parts with at most one result per server.

    Results of the same server keep their order.
    """
    parts: list[list[Ended]] = []
    seen: Counter[ServerId] = Counter()
    for order, result in reported:
        turn = seen[order.server_uuid]
        seen[order.server_uuid] += 1
        if turn == len(parts):
            parts.append([])
        parts[turn].append((order, result))
    return parts


def sweep(
    tx: Tx,
    order_timeout_s: float,
    now: datetime,
    settings: ResultSettings = ResultSettings(),  # noqa: B008 - frozen
) -> int:
    """End orders that timed out. Return the number of affected orders and servers.

    An order that timed out counts as failed. The effects of the failure are safe even if the agent
    has carried out the order. Overdue cleanups and offloads are repeated. Servers that have been
    shelved for ``shelved_offload_time`` are offloaded.
    """
    # If a clock was ahead and has been set back, some heartbeats have times in the future. These
    # times are reset, because agents that are down would otherwise count as up.
    agent_rows.reset_future_heartbeats(
        tx, now + timedelta(seconds=settings.service_down_time_s), now
    )
    limit = now - timedelta(seconds=order_timeout_s)
    late = orders.waiting_since(tx, limit, TIMED, SWEEP_MAX)
    message = f"Host %s did not confirm the %s in {order_timeout_s:.0f} s."
    results = [(o, Result(o.id, False, message % (o.host, o.kind), is_late=True)) for o in late]
    _end(tx, results, settings, now)
    for order in orders.waiting_since(tx, limit, {OrderKind.SEND}, SWEEP_MAX):
        live.give_up_waiting(tx, order, message % (order.host, order.kind), now)
    count = len(late) + cleanup.retry(tx, limit, SWEEP_MAX, now)
    count += cleanup.repeat_destroys(tx, limit, SWEEP_MAX, now)
    count += force_detaching.sweep(tx, limit, now)
    count += shelving.retry_offloads(tx, limit, SWEEP_MAX, now)
    if settings.shelved_offload_time > 0:
        before = now - timedelta(seconds=settings.shelved_offload_time)
        count += shelving.offload_due(tx, before, SWEEP_MAX, now)
    return count


def prune(tx: Tx, now: datetime) -> int:
    """Delete some of the orders that ended long ago. Return the number of deleted orders."""
    return orders.prune(tx, now - timedelta(seconds=KEPT_S))
