"""Deletion: a server goes, with all that moves of it or was left of it elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from innkeeper.domain.compute import OrderKind, Task
from innkeeper.domain.errors import NotFound
from innkeeper.domain.moves import ActionName, Asker
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
    asker: Asker | None = None,
) -> None:
    """Begin to delete a server, or delete it at once where there is nobody to wait for.

    On a host that is up its agent is told, and :func:`servers.finish_deletes` follows its
    report. Without a host, or on one that is down, the server is deleted here; the order then
    waits for the agent. Deleting a server that is being deleted asks for nothing new.
    """
    server = servers.get(tx, uuid)
    servers.demand_unlocked(server, may_override=may_override)
    home = servers.homes(tx, [server]).get(server.host or "")
    if server.task_state != Task.DELETING:
        completion.let_go(tx, server, now)
        if asker is not None:
            server_actions.add(tx, server.uuid, ActionName.DELETE, asker, now)
    if home is not None and server.task_state != Task.DELETING:
        order = NewOrder(
            home.agent_id,
            home.name,
            server.uuid,
            OrderKind.DESTROY,
            request_id=None if asker is None else asker.request_id,
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
    asker: Asker,
) -> int:
    """As :func:`delete`, locks notwithstanding, for at most so many of the servers on hosts.

    Tells for how many that was still to be asked for. For who asks again and again until all
    are gone: one that is being deleted is left to its agent, as long as that one is up.
    """
    heard_since = now - timedelta(seconds=service_down_time_s)
    told = 0
    for uuid in hosts.to_delete(tx, names, heard_since, most):
        # One that is gone by now. What else refuses has written something, and ends the step.
        with suppress(NotFound):
            delete(
                tx,
                uuid,
                now,
                service_down_time_s=service_down_time_s,
                may_override=True,
                asker=asker,
            )
            told += 1
    return told
