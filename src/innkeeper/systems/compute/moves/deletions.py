"""Deletion of servers, with the end of their moves."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from innkeeper.domain.compute import OrderKind, Task
from innkeeper.domain.errors import NotFound
from innkeeper.domain.moves import ActionName, Initiator
from innkeeper.store.queries.compute import hosts, orders, server_actions
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import completion
from innkeeper.systems.compute.servers import servers


def delete(
    tx: Tx,
    uuid: str,
    now: datetime,
    *,
    service_down_time_s: float,
    may_override: bool,
    initiator: Initiator | None = None,
) -> None:
    """Begin to delete a server; delete it at once if it has no host, or its host is down.

    The agent of a host that is up gets an order, and the server is deleted when the agent has
    confirmed. The agent of a host that is down finds the order when it is back. Deleting a server
    that is being deleted gives no second order.
    """
    server = servers.get(tx, uuid)
    servers.demand_unlocked(server, may_override=may_override)
    home = servers.homes(tx, [server]).get(server.host or "")
    if server.task_state != Task.DELETING:
        completion.end_moves(tx, server, now)
        if initiator is not None:
            server_actions.add(tx, server.uuid, ActionName.DELETE, initiator, now)
    if home is not None and server.task_state != Task.DELETING:
        request_id = None if initiator is None else initiator.request_id
        order = NewOrder(
            home.agent_id, home.name, server.uuid, OrderKind.DESTROY, request_id=request_id
        )
        orders.add(tx, [order], now)
        servers.write(tx, server, {"task_state": Task.DELETING}, now)
    if home is None or not home.is_up(now, service_down_time_s):
        servers.finish_deletes(tx, [server.uuid], now)


def delete_some(
    tx: Tx,
    names: Collection[str],
    now: datetime,
    most: int,
    *,
    service_down_time_s: float,
    initiator: Initiator,
) -> int:
    """Begin to delete at most ``most`` of the servers on these hosts, even if they are locked.

    Returns for how many it was not ordered before, so that the caller can repeat it until none
    is left. Servers that an agent that is up is destroying already are skipped.
    """
    seen_since = now - timedelta(seconds=service_down_time_s)
    count = 0
    for uuid in hosts.to_delete(tx, names, seen_since, most):
        # A server may be gone by now. Other refusals come after writes, and end the step.
        with suppress(NotFound):
            down_s = service_down_time_s
            delete(
                tx, uuid, now, service_down_time_s=down_s, may_override=True, initiator=initiator
            )
            count += 1
    return count
