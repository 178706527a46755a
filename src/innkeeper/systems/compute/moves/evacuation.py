"""Evacuation: a server is built anew on another host because its own is lost.

Always true: only from a host that is down. What the server held there is the migration's from
then on, until the host's agent is back and has destroyed what it finds; nobody else is placed
on what may still be running.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from innkeeper.domain.compute import OrderKind, Power, Status, Task
from innkeeper.domain.errors import Invalid
from innkeeper.domain.moves import ActionName, Asker, MigrationKind, MigrationStatus, Moved
from innkeeper.store.queries.compute import orders
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import cold_migration, completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost
from innkeeper.systems.compute.moves.moving import Drawn, Start
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told

EVACUABLE = (Status.ACTIVE, Status.SHUTOFF, Status.ERROR)


class HostInUse(Invalid):
    """The host of a server that is to be evacuated is not down."""


def evacuate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    asker: Asker,
    *,
    host: str | None = None,
    is_forced: bool = False,
    is_started: bool = True,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to build a server anew. A forced host is not judged by the scheduler.

    It runs then if it ran before and ``is_started``; else it is shut off. Raises
    :class:`HostInUse` while the server's host is up.
    """
    now = drawn["now"]
    server = actions.admit(tx, uuid, asker, EVACUABLE)
    wanted = destinations.demand_other(tx, server, host)
    source = servers.demand_host(server)
    home = servers.homes(tx, [server]).get(source)
    silence_max_s = context.computing.service_down_time_s
    if home is not None and home.is_up(now, silence_max_s):
        raise HostInUse(f"Compute service of {source} is still in use.")
    place = destinations.elsewhere(
        tx, context, server, wanted, seed=drawn["seed"], now=now, is_forced=is_forced
    )
    if isinstance(place, NoValidHost):
        return moving.nowhere(tx, server, ActionName.EVACUATE, asker, place, now)
    # A live migration that was never heard of again, perhaps.
    completion.let_go(tx, server, now)
    # What it was told and has not confirmed is no longer worth doing.
    orders.withdraw(tx, server.uuid, source, now)
    task = {"task_state": Task.REBUILDING}
    actions.begin(tx, server, ActionName.EVACUATE, asker, task, now)
    start = Start(MigrationKind.EVACUATION, MigrationStatus.ACCEPTED)
    made = moving.begin(tx, server, place, asker, start, drawn["new_id"], now)
    is_off = server.status == Status.SHUTOFF or not is_started
    power = Power.SHUTDOWN if is_off else Power.RUNNING
    body = {**actions.order_body(server), "power_state": power}
    moving.tell(tx, made, place.host, OrderKind.EVACUATE, body, now)
    return Moved(made.id)


def follow(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The new host has built the server, or it has not."""
    found = cold_migration.open_move(tx, order, MigrationStatus.ACCEPTED, Task.REBUILDING)
    if found is None:
        return
    migration, server = found
    values: dict[str, Any] = {"task_state": None}
    if not result.is_ok:
        if result.is_late:
            # It may have been built all the same.
            completion.fall_back(tx, migration, server, told(order, result), now)
        else:
            moving.give_back(tx, migration, server, now)
            completion.end(tx, migration, MigrationStatus.FAILED, now, told(order, result))
        values |= {
            "status": Status.ERROR,
            "fault": servers.fault(told(order, result), now, result.message),
        }
        servers.write(tx, server, values, now)
        return
    power = orders.bodies(tx, [order.id])[order.id]["power_state"]
    values |= {
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
