"""Begin and end actions on servers, and queue their orders for agents.

Always true: an action begins only in a state that permits it. To begin an action, the code records
it and changes the server's row by compare-and-update. If two actions begin concurrently, one of
them is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import WrongState
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Initiator
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import hosts, orders, server_actions
from innkeeper.store.queries.compute.orders import NewOrder, OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.compute.servers.results import Result, owner_message
from innkeeper.systems.volumes import attachments

IDLE: Collection[str | None] = (None,)
HOST_STAYS = "a host with servers cannot be removed"
BRINGING = frozenset(
    {OrderKind.ARRIVE, OrderKind.RETURN, OrderKind.EXPECT, OrderKind.EVACUATE, OrderKind.UNSHELVE}
)
"""Orders that bring a server to a host. Each order lists the server's volumes, which the host must
connect."""


def admit(
    tx: Tx,
    uuid: str,
    initiator: Initiator,
    statuses: Collection[str],
    tasks: Collection[str | None] = IDLE,
) -> Server:
    """Return the server if its state permits an action.

    Raises :class:`NotFound`, :class:`Locked` or :class:`WrongState`.
    """
    server = servers.get(tx, uuid)
    servers.demand_unlocked(server, may_override=initiator.may_override)
    if server.status not in statuses:
        raise WrongState(server.uuid, "status", server.status)
    if server.task_state not in tasks:
        raise WrongState(server.uuid, "task_state", server.task_state)
    if server.launched_at is None:
        # A server that never ran cannot be stopped, moved or shelved.
        raise WrongState(server.uuid, "launched_at", None)
    return server


def begin(
    tx: Tx,
    server: Server,
    action: str,
    initiator: Initiator,
    values: Mapping[str, Any],
    now: datetime,
) -> None:
    """Record that an action begins, and write the new ``values`` to the server's row."""
    servers.write(tx, server, values, now)
    server_actions.add(tx, server.uuid, action, initiator, now)


def give_order(
    tx: Tx,
    host: str,
    server_uuid: ServerId,
    kind: str,
    body: Mapping[str, Any],
    now: datetime,
    *,
    request_id: str | None = None,
    migration_id: int | None = None,
) -> bool:
    """Queue an order for the agent of a host. Return False if the host no longer exists."""
    home = hosts.by_names(tx, [host]).get(host)
    if home is None:
        return False
    volumes = attachments.orders_body(tx, server_uuid) if kind in BRINGING else []
    order = NewOrder(
        home.agent_id,
        home.name,
        server_uuid,
        kind,
        {**body, "volumes": volumes} if volumes else body,
        request_id=request_id,
        migration_id=migration_id,
    )
    orders.add(tx, [order], now)
    return True


def order_home(
    tx: Tx,
    server: Server,
    kind: str,
    body: Mapping[str, Any],
    request_id: str | None,
    now: datetime,
) -> None:
    """Queue an order for the agent of the host that a server is on."""
    host = servers.demand_host(server)
    is_given = give_order(tx, host, server.uuid, kind, body, now, request_id=request_id)
    assert is_given, HOST_STAYS


def end(
    tx: Tx, server_uuid: ServerId, request_id: str | None, message: str | None, now: datetime
) -> None:
    """Record that an action has progressed or ended. ``message`` is the reason for a failure."""
    if request_id is not None:
        server_actions.end(tx, server_uuid, request_id, message, now)


def end_by(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Record the result of an order in the server action that gave the order."""
    message = None if result.is_ok else owner_message(order, result)
    end(tx, order.server_uuid, order.request_id, message, now)


def fault_of(order: OpenOrder, result: Result, now: datetime) -> dict[str, Any]:
    """Return the fault of a server whose order failed."""
    return servers.fault(owner_message(order, result), now, result.message)


def order_body(server: Server, flavor: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the body of an order: the facts about a server that an agent needs.

    ``flavor`` overrides the server's flavor.
    """
    return {
        "name": server.name,
        "project_id": server.project_id,
        "flavor": dict(server.flavor if flavor is None else flavor),
        "image_id": server.image_id,
        "key_name": server.key_name,
        "has_config_drive": server.has_config_drive,
        "user_data": server.user_data,
        "metadata": dict(server.metadata),
        "power_state": server.power_state,
    }
