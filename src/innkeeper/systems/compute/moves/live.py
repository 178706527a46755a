"""Move servers by live migration: a server moves to another host while it runs.

First the destination prepares for the server (order ``expect``), then the source sends the server
(order ``send``). Afterwards the server is on the destination, and nothing of it is left on the
source.

If the send order timed out, the recorded host of the server may be wrong, because the server may be
on the source or on the destination. The allocations on both hosts are then kept until the source
reports, or the server is reset or deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from innkeeper.domain.compute import Server, Status, Task
from innkeeper.domain.moves import (
    ActionName,
    Initiator,
    Migration,
    MigrationKind,
    MigrationStatus,
    Moved,
)
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import cold_migration, completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost
from innkeeper.systems.compute.moves.moving import Drawn, Start
from innkeeper.systems.compute.servers import actions, servers, volume_orders
from innkeeper.systems.compute.servers.results import Result, owner_message

MOVABLE = (Status.ACTIVE, Status.PAUSED)


def migrate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    initiator: Initiator,
    *,
    host: str | None = None,
    is_forced: bool = False,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to move a running server. The scheduler does not check a forced host."""
    now = drawn["now"]
    server = actions.admit(tx, uuid, initiator, MOVABLE)
    volume_orders.demand_settled(tx, server.uuid)
    wanted = destinations.demand_other(tx, server, host)
    destinations.demand_up(tx, context, server, now)
    place = destinations.elsewhere(
        tx, context, server, wanted, seed=drawn["seed"], now=now, is_forced=is_forced
    )
    if isinstance(place, NoValidHost):
        return moving.no_valid_host(tx, server, ActionName.LIVE_MIGRATION, initiator, place, now)
    start = Start(
        ActionName.LIVE_MIGRATION, Task.MIGRATING, MigrationKind.LIVE, MigrationStatus.PREPARING
    )
    begun = moving.begin(tx, server, place, initiator, start, drawn["new_id"], now)
    moving.give_order(tx, begun, place.host, OrderKind.EXPECT, actions.order_body(server), now)
    return Moved(begun.id)


def apply_expect(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an ``expect`` order, with which the destination prepares."""
    found = cold_migration.open_move(tx, order, MigrationStatus.PREPARING, Task.MIGRATING)
    if found is None:
        return
    migration, server = found
    if not result.is_ok:
        # The destination may have begun to prepare.
        stay(tx, migration, server, MigrationStatus.FAILING, now, owner_message(order, result))
        return
    migrations.change_status(tx, migration, MigrationStatus.RUNNING, now)
    moving.order_source(tx, migration, OrderKind.SEND, actions.order_body(server), now)


def apply_send(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a ``send`` order, with which the source sends the server."""
    assert order.migration_id is not None, "sending is a part of a migration"
    migration = migrations.by_id(tx, order.migration_id)
    server = server_rows.by_uuid(tx, order.server_uuid)
    if migration is not None and migration.status == MigrationStatus.CANCELLING:
        # The server was deleted or reset in the meantime, so the destination destroys its copy.
        completion.leave_behind(tx, migration, MigrationStatus.CANCELLING, now)
        return
    if migration is None or migration.status != MigrationStatus.RUNNING or server is None:
        return
    if not result.is_ok:
        is_aborted = bool(orders.of_migration(tx, migration.id, OrderKind.ABORT))
        status = MigrationStatus.CANCELLING if is_aborted else MigrationStatus.FAILING
        stay(tx, migration, server, status, now, owner_message(order, result))
        return
    values: dict[str, Any] = {
        "host": migration.dest_host,
        "provider_id": migration.dest_provider_id,
        **_settled(migration, server),
    }
    servers.write(tx, server, values, now)
    completion.end(tx, migration, MigrationStatus.COMPLETED, now)
    actions.end(tx, server.uuid, migration.request_id, None, now)


def stay(
    tx: Tx, migration: Migration, server: Server, status: str, now: datetime, message: str
) -> None:
    """Leave the server on its source, and order the destination to undo its preparation."""
    completion.fall_back(tx, migration, server, message, now, status=status)
    servers.write(tx, server, _settled(migration, server), now)


def _settled(migration: Migration, server: Server) -> dict[str, Any]:
    """Return the new values of a server's columns after its move.

    The result is empty if another action on the server has begun.
    """
    if server.task_state == Task.MIGRATING:
        return {"task_state": None}
    if server.task_state is None and server.status == Status.ERROR:
        return {"status": migration.old_state["status"], "fault": None}
    return {}


def give_up_waiting(tx: Tx, order: OpenOrder, message: str, now: datetime) -> None:
    """After a send order timed out, set its server to ERROR and order the source to abort.

    The send order stays open, because only its result tells which host has the server.
    """
    found = cold_migration.open_move(tx, order, MigrationStatus.RUNNING, Task.MIGRATING)
    if found is None:
        return
    migration, server = found
    moving.give_order(tx, migration, migration.source_host, OrderKind.ABORT, {}, now)
    why = owner_message(order, Result(order.id, False, message, is_late=True))
    values = {"status": Status.ERROR, "task_state": None, "fault": servers.fault(why, now, message)}
    servers.write(tx, server, values, now)
    actions.end(tx, server.uuid, migration.request_id, why, now)
