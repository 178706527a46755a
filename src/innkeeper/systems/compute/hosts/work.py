"""Work orders after they were given: handed to agents, reported, timed out, forgotten.

Always true: an order ends once, and what follows from it happens in the transaction that ends
it; a report that comes twice or too late is accepted and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from innkeeper.domain.compute import OrderKind, OrderStatus, WorkOrder
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.store.queries.compute import agents, orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import (
    cleanup,
    cold_migration,
    evacuation,
    leftovers,
    live,
    migrations,
    shelving,
)
from innkeeper.systems.compute.servers import builds, power
from innkeeper.systems.compute.servers.results import (
    Follow,
    News,
    Result,
    ResultSettings,
    one_by_one,
)

SWEEP_MAX = 500
"""The most orders that one sweep ends, and the most that it forgets. As many builds take some
sixty milliseconds, for which everybody else's writes wait."""
KEPT_S = 24 * 3600.0
"""How long an order that ended is kept, for whoever looks into what happened."""
TOPIC = orders.TOPIC
"""Under which a commit notes the agents that it has orders for."""

FOLLOWS: Mapping[str, Follow] = {
    OrderKind.BUILD: builds.follow,
    OrderKind.DESTROY: cleanup.follow,
    **dict.fromkeys(sorted(power.KINDS), one_by_one(power.follow)),
    OrderKind.DEPART: one_by_one(cold_migration.follow_depart),
    OrderKind.ARRIVE: one_by_one(cold_migration.follow_arrive),
    OrderKind.RETURN: one_by_one(cold_migration.follow_return),
    OrderKind.RESIZE: one_by_one(cold_migration.follow_resize),
    OrderKind.EXPECT: one_by_one(live.follow_expect),
    OrderKind.SEND: one_by_one(live.follow_send),
    OrderKind.ABORT: one_by_one(migrations.follow_request),
    OrderKind.HURRY: one_by_one(migrations.follow_request),
    OrderKind.EVACUATE: one_by_one(evacuation.follow),
    OrderKind.SHELVE: one_by_one(shelving.follow_shelve),
    OrderKind.OFFLOAD: one_by_one(shelving.follow_offload),
    OrderKind.UNSHELVE: one_by_one(shelving.follow_unshelve),
}
"""What follows from news about each kind of order. Builds and deletions come by the hundred and
are followed together."""
ENDLESS = frozenset({OrderKind.DESTROY, OrderKind.OFFLOAD, OrderKind.SEND})
"""Orders without a time limit: a host that comes back must not keep what was deleted; and where
a server is that was being sent, only its source can tell."""
TIMED = frozenset(FOLLOWS) - ENDLESS


def waiting(tx: Tx, agent_id: AgentId, after: int, limit: int) -> list[WorkOrder]:
    """An agent's orders, oldest first; each is given again until its result is reported."""
    return orders.waiting(tx, agent_id, after, limit)


def newest(tx: Tx) -> int:
    """The number of the newest order that was given."""
    return orders.newest(tx)


def given_since(tx: Tx, last: int) -> tuple[int, frozenset[str]]:
    """The newest order behind ``last``, or that itself; and the agents with any behind it."""
    behind = orders.agents_behind(tx, last)
    return max(behind.values(), default=last), frozenset(behind)


def record(
    tx: Tx,
    agent_id: AgentId,
    results: Sequence[Result],
    now: datetime,
    settings: ResultSettings = ResultSettings(),  # noqa: B008 - frozen
) -> list[tuple[int, bool]]:
    """Take an agent's results; gives each order's number, and whether the result was news.

    Results about orders that are not this agent's, that do not exist or that ended before are
    no news.
    """
    known = orders.waiting_among(tx, {each.order_id for each in results})
    reported: list[News] = []
    told: list[tuple[int, bool]] = []
    for each in results:
        # Taken out, so that what is told twice in one breath is news once.
        order = known.pop(each.order_id, None)
        is_new = order is not None and order.agent_id == agent_id
        if is_new and order is not None:
            reported.append((order, each))
        told.append((each.order_id, is_new))
    _end(tx, reported, settings, now)
    return told


def _end(tx: Tx, reported: Sequence[News], settings: ResultSettings, now: datetime) -> None:
    done, failed = ([o.id for o, r in reported if r.is_ok is ok] for ok in (True, False))
    orders.end(tx, done, OrderStatus.DONE, now)
    orders.end(tx, failed, OrderStatus.FAILED, now)
    orders.set_messages(tx, {order.id: each.message for order, each in reported if not each.is_ok})
    for part in _one_of_each_server(reported):
        for kind, follow in FOLLOWS.items():
            alike = [each for each in part if each[0].kind == kind]
            if alike:
                follow(tx, alike, settings, now)


def _one_of_each_server(reported: Sequence[News]) -> list[list[News]]:
    # What is told of one server follows in the order in which it is told.
    parts: list[list[News]] = []
    seen: dict[ServerId, int] = {}
    for order, result in reported:
        turn = seen.get(order.server_uuid, 0)
        seen[order.server_uuid] = turn + 1
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
    """End orders that nobody confirmed in time, and forget old ones; give their number.

    What was to be done has failed then, in the way that is safe if it was done all the same.
    What is still to be destroyed is asked for again, and servers leave the hosts that they were
    shelved on long enough ago.
    """
    # A clock that was set back must not have the dead be heard for as long as it was wrong.
    agents.reset_future_heartbeats(tx, now + timedelta(seconds=settings.service_down_time_s), now)
    limit = now - timedelta(seconds=order_timeout_s)
    late = orders.waiting_since(tx, limit, TIMED, SWEEP_MAX)
    told = f"Host %s did not confirm the %s in {order_timeout_s:.0f} s."
    _end(
        tx,
        [(o, Result(o.id, False, told % (o.host, o.kind), is_late=True)) for o in late],
        settings,
        now,
    )
    for order in orders.waiting_since(tx, limit, {OrderKind.SEND}, SWEEP_MAX):
        live.give_up_waiting(tx, order, told % (order.host, order.kind), now)
    count = len(late) + leftovers.remind(tx, limit, SWEEP_MAX, now)
    count += shelving.remind(tx, limit, SWEEP_MAX, now)
    if settings.shelved_offload_time > 0:
        before = now - timedelta(seconds=settings.shelved_offload_time)
        count += shelving.offload_due(tx, before, SWEEP_MAX, now)
    return count + orders.prune(tx, now - timedelta(seconds=KEPT_S), SWEEP_MAX)
