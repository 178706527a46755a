"""Live migration: a server goes to another host while it runs.

The destination makes itself ready (``expect``), the source sends (``send``), and when it has
sent, the server is on the destination and nothing of it on the source.

May be false: where a server is whose source has not told in time how sending ended. Then both
hosts stay claimed until it tells, or somebody gives the server up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from innkeeper.domain.compute import OrderKind, Server, Status, Task
from innkeeper.domain.moves import (
    ActionName,
    Asker,
    Migration,
    MigrationKind,
    MigrationStatus,
    Moved,
)
from innkeeper.store.queries.compute import migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import cold_migration, completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost
from innkeeper.systems.compute.moves.moving import Drawn, Start
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told

MOVABLE = (Status.ACTIVE, Status.PAUSED)


def migrate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    asker: Asker,
    *,
    host: str | None = None,
    is_forced: bool = False,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to move a running server. A forced host is not judged by the scheduler."""
    now = drawn["now"]
    server = actions.admit(tx, uuid, asker, MOVABLE)
    wanted = destinations.demand_other(tx, server, host)
    destinations.demand_up(tx, context, server, now)
    place = destinations.elsewhere(
        tx, context, server, wanted, seed=drawn["seed"], now=now, is_forced=is_forced
    )
    if isinstance(place, NoValidHost):
        return moving.nowhere(tx, server, ActionName.LIVE_MIGRATION, asker, place, now)
    values = {"task_state": Task.MIGRATING}
    actions.begin(tx, server, ActionName.LIVE_MIGRATION, asker, values, now)
    start = Start(MigrationKind.LIVE, MigrationStatus.PREPARING)
    made = moving.begin(tx, server, place, asker, start, drawn["new_id"], now)
    moving.tell(tx, made, place.host, OrderKind.EXPECT, actions.order_body(server), now)
    return Moved(made.id)


def follow_expect(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The destination is ready, or it is not."""
    found = cold_migration.open_move(tx, order, MigrationStatus.PREPARING, Task.MIGRATING)
    if found is None:
        return
    migration, server = found
    if not result.is_ok:
        # It may have begun to make itself ready.
        stay(tx, migration, server, MigrationStatus.FAILING, now, told(order, result))
        return
    migrations.change_status(tx, migration, MigrationStatus.RUNNING, now)
    body = actions.order_body(server)
    is_told = moving.tell(tx, migration, migration.source_host, OrderKind.SEND, body, now)
    assert is_told, "a host with a server on it is not forgotten"


def follow_send(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The source has sent the server, or it has kept it."""
    assert order.migration_id is not None, "sending is a part of a migration"
    migration = migrations.by_id(tx, order.migration_id)
    server = server_rows.by_uuid(tx, order.server_uuid)
    if migration is not None and migration.status == MigrationStatus.CANCELLING:
        # The server was given up while it was on its way. What arrived has to go.
        completion.leave_behind(tx, migration, MigrationStatus.CANCELLING, now)
        return
    if migration is None or migration.status != MigrationStatus.RUNNING or server is None:
        return
    if not result.is_ok:
        is_asked = bool(orders.of_migration(tx, migration.id, OrderKind.ABORT))
        status = MigrationStatus.CANCELLING if is_asked else MigrationStatus.FAILING
        stay(tx, migration, server, status, now, told(order, result))
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
    """The server goes on where it is; its destination clears away what was made ready."""
    completion.fall_back(tx, migration, server, message, now, status=status)
    servers.write(tx, server, _settled(migration, server), now)


def _settled(migration: Migration, server: Server) -> dict[str, Any]:
    """What a server is again after its move, unless something else has begun meanwhile."""
    if server.task_state == Task.MIGRATING:
        return {"task_state": None}
    if server.task_state is None and server.status == Status.ERROR:
        return {"status": migration.old_state["status"], "fault": None}
    return {}


def give_up_waiting(tx: Tx, order: OpenOrder, message: str, now: datetime) -> None:
    """Nobody told in time how sending ended: say so, and ask the source to stop.

    The order stays, since only its result tells where the server is.
    """
    found = cold_migration.open_move(tx, order, MigrationStatus.RUNNING, Task.MIGRATING)
    if found is None:
        return
    migration, server = found
    moving.tell(tx, migration, migration.source_host, OrderKind.ABORT, {}, now)
    why = told(order, Result(order.id, False, message, is_late=True))
    values = {"status": Status.ERROR, "task_state": None, "fault": servers.fault(why, now, message)}
    servers.write(tx, server, values, now)
    actions.end(tx, server.uuid, migration.request_id, why, now)
