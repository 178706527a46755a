"""Evacuate servers: rebuild a server on another host because its own host is down.

Always true: only a server whose host is down is evacuated. The migration keeps the allocations on
the lost host until the host's agent is up again and has destroyed its copy of the server. So no
other server is placed on capacity that may still be in use.
"""

from __future__ import annotations

from datetime import datetime
from typing import Unpack

from innkeeper.domain.compute import Power, Status, Task
from innkeeper.domain.errors import Invalid
from innkeeper.domain.moves import ActionName, Initiator, MigrationKind, MigrationStatus, Moved
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import orders
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import cold_migration, completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost
from innkeeper.systems.compute.moves.moving import Drawn, Start
from innkeeper.systems.compute.servers import actions, servers, volume_orders
from innkeeper.systems.compute.servers.results import Result, owner_message

EVACUABLE = (Status.ACTIVE, Status.SHUTOFF, Status.ERROR)


class HostInUse(Invalid):
    """The server cannot be evacuated, because its host is up."""


def evacuate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    initiator: Initiator,
    *,
    host: str | None = None,
    is_forced: bool = False,
    is_started: bool = True,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to rebuild a server on another host. The scheduler does not check a forced host.

    If the server was shut off, or if ``is_started`` is False, the server is shut off afterwards.
    Otherwise, the server runs. Raises :class:`HostInUse` if the server's present host is up.
    """
    now = drawn["now"]
    server = actions.admit(tx, uuid, initiator, EVACUABLE)
    wanted = destinations.demand_other(tx, server, host)
    source = servers.demand_host(server)
    home = servers.homes(tx, [server]).get(source)
    if home is not None and home.is_up(now, context.computing.service_down_time_s):
        raise HostInUse(f"Compute service of {source} is still in use.")
    place = destinations.elsewhere(
        tx, context, server, wanted, seed=drawn["seed"], now=now, is_forced=is_forced
    )
    if isinstance(place, NoValidHost):
        return moving.no_valid_host(tx, server, ActionName.EVACUATE, initiator, place, now)
    # The server may have an open live migration whose result was lost with the host.
    completion.end_moves(tx, server, now)
    orders.withdraw(tx, server.uuid, source, now)
    start = Start(
        ActionName.EVACUATE, Task.REBUILDING, MigrationKind.EVACUATION, MigrationStatus.ACCEPTED
    )
    begun = moving.begin(tx, server, place, initiator, start, drawn["new_id"], now)
    is_off = server.status == Status.SHUTOFF or not is_started
    power = Power.SHUTDOWN if is_off else Power.RUNNING
    body = {**actions.order_body(server), "power_state": power}
    moving.give_order(tx, begun, place.host, OrderKind.EVACUATE, body, now)
    return Moved(begun.id)


def apply(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an ``evacuate`` order, with which the new host builds the server."""
    found = cold_migration.open_move(tx, order, MigrationStatus.ACCEPTED, Task.REBUILDING)
    if found is None:
        return
    migration, server = found
    if not result.is_ok:
        if result.is_late:
            # The host may have built the server despite the timeout.
            completion.fall_back(tx, migration, server, owner_message(order, result), now)
        else:
            moving.give_back(tx, migration, server, now)
            completion.end(tx, migration, MigrationStatus.FAILED, now, owner_message(order, result))
        fault = actions.fault_of(order, result, now)
        failed = {"task_state": None, "status": Status.ERROR, "fault": fault}
        servers.write(tx, server, failed, now)
        return
    body = orders.bodies(tx, [order.id])[order.id]
    volume_orders.server_arrived(tx, body.get("volumes", ()), now)
    power = body["power_state"]
    values = {
        "task_state": None,
        "host": migration.dest_host,
        "provider_id": migration.dest_provider_id,
        "status": Status.SHUTOFF if power == Power.SHUTDOWN else Status.ACTIVE,
        "power_state": power,
        "launched_at": now,
        "fault": None,
    }
    servers.write(tx, server, values, now)
    actions.end(tx, server.uuid, migration.request_id, None, now)
    completion.leave_behind(tx, migration, MigrationStatus.DONE, now)
