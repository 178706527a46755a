"""How something that is done to a server begins, and how agents are told of it.

Always true: what begins is admitted by the server's state, written down as an action, and
changes the server's row by compare-and-update; of two that begin at once one is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import WrongState
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Asker
from innkeeper.store.queries.compute import hosts, orders, server_actions
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import servers

IDLE: Collection[str | None] = (None,)


def admit(
    tx: Tx, uuid: str, asker: Asker, statuses: Collection[str], tasks: Collection[str | None] = IDLE
) -> Server:
    """The server, if it is in a state in which that may be done to it.

    Raises :class:`NotFound`, :class:`Locked` or :class:`WrongState`.
    """
    server = servers.get(tx, uuid)
    servers.demand_unlocked(server, may_override=asker.may_override)
    if server.status not in statuses:
        raise WrongState(server.uuid, "status", server.status)
    if server.task_state not in tasks:
        raise WrongState(server.uuid, "task_state", server.task_state)
    if server.launched_at is None:
        # What never ran cannot be stopped, moved or shelved.
        raise WrongState(server.uuid, "launched_at", None)
    return server


def begin(
    tx: Tx, server: Server, action: str, asker: Asker, values: Mapping[str, Any], now: datetime
) -> None:
    """Write that an action begins, and what the server is while it lasts."""
    servers.write(tx, server, values, now)
    server_actions.add(tx, server.uuid, action, asker, now)


def tell(
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
    """Give an order to the agent of a host; False if there is no such host any more."""
    home = hosts.by_names(tx, [host]).get(host)
    if home is None:
        return False
    order = NewOrder(
        home.agent_id,
        home.name,
        server_uuid,
        kind,
        body,
        request_id=request_id,
        migration_id=migration_id,
    )
    orders.add(tx, [order], now)
    return True


def end(
    tx: Tx, server_uuid: ServerId, request_id: str | None, message: str | None, now: datetime
) -> None:
    """Write that an action went on or ended; with a message, that it did not work."""
    if request_id is not None:
        server_actions.end(tx, server_uuid, request_id, message, now)


def order_body(server: Server, flavor: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What an agent must know of a server to have it, in another size if one is given."""
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
