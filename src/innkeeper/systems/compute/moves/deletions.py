"""Delete servers and end their moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from innkeeper.domain.compute import Task
from innkeeper.domain.errors import NotFound
from innkeeper.domain.moves import ActionName, Initiator
from innkeeper.domain.orders import OrderKind
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
    """Begin to delete a server.

    The agent of the server's host gets a destroy order. If the host is up, the server is deleted
    once the agent has confirmed. If the host is down, or there is no host, the server is deleted at
    once. The agent of a host that is down gets the order when it is up again. A server that is
    already being deleted gets no second order.
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

    Return how many servers were deleted or ordered to be destroyed. The caller can repeat this call
    until no server is left. A server is skipped if its agent is up and is already destroying the
    server.
    """
    seen_since = now - timedelta(seconds=service_down_time_s)
    uuids = hosts.to_delete(tx, names, seen_since, most)
    down_s = service_down_time_s
    return delete_these(tx, uuids, now, service_down_time_s=down_s, initiator=initiator)


def delete_these(
    tx: Tx, uuids: Iterable[str], now: datetime, *, service_down_time_s: float, initiator: Initiator
) -> int:
    """Begin to delete these servers, even if they are locked.

    Returns how many servers were deleted or ordered to be destroyed.
    """
    down_s, count = service_down_time_s, 0
    for uuid in uuids:
        # The server may already be deleted. Any other refusal must roll the transaction back,
        # because it may come after writes.
        with suppress(NotFound):
            delete(
                tx, uuid, now, service_down_time_s=down_s, may_override=True, initiator=initiator
            )
            count += 1
    return count
