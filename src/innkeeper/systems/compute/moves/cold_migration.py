"""What follows when agents carry a server that was shut down from one host to another.

Always true: what follows is done only while the migration is where the order belongs; a result
that comes after the server was deleted, or the move given up, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import OrderKind, Power, Server, Status, Task
from innkeeper.domain.moves import Migration, MigrationKind, MigrationStatus
from innkeeper.store.queries.compute import migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import completion, moving
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told
from innkeeper.systems.placement import transfers


def open_move(
    tx: Tx, order: OpenOrder, status: str, task: str | None
) -> tuple[Migration, Server] | None:
    """The migration and the server that an order is about, if both are where it expects."""
    if order.migration_id is None:
        return None
    migration = migrations.by_id(tx, order.migration_id)
    server = server_rows.by_uuid(tx, order.server_uuid)
    if migration is None or server is None:
        return None
    if migration.status != status or server.task_state != task:
        return None
    return migration, server


def follow_depart(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The source has made the server ready to leave, or it has not."""
    found = open_move(tx, order, MigrationStatus.MIGRATING, Task.RESIZE_MIGRATING)
    if found is None:
        return
    migration, server = found
    if not result.is_ok:
        _stay(tx, migration, server, told(order, result), now, is_unsure=result.is_late)
        return
    assert migration.dest_host is not None, "it was begun with a place to go to"
    body = actions.order_body(server, migration.new_flavor)
    if not moving.tell(tx, migration, migration.dest_host, OrderKind.ARRIVE, body, now):
        why = "The host to which it was to go is gone."
        _stay(tx, migration, server, why, now, is_unsure=True)
        return
    migrations.change_status(tx, migration, MigrationStatus.POST_MIGRATING, now)
    servers.write(tx, server, {"task_state": Task.RESIZE_FINISH}, now)


def follow_arrive(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The destination has taken the server, or it has not."""
    found = open_move(tx, order, MigrationStatus.POST_MIGRATING, Task.RESIZE_FINISH)
    if found is None:
        return
    migration, server = found
    if result.is_ok:
        _arrive(tx, migration, server, now)
        return
    _stay(
        tx,
        migration,
        server,
        told(order, result),
        now,
        is_unsure=True,
        # It may have taken it all the same.
        may_be_there=result.is_late,
    )


def follow_resize(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The host has given the server its other size, or its old one again, or it has not."""
    found = open_move(tx, order, MigrationStatus.POST_MIGRATING, Task.RESIZE_FINISH)
    if found is not None:
        migration, server = found
        if result.is_ok:
            _arrive(tx, migration, server, now)
        else:
            is_late, why = result.is_late, told(order, result)
            _stay(tx, migration, server, why, now, is_unsure=is_late, may_be_there=is_late)
        return
    found = open_move(tx, order, MigrationStatus.REVERTING, Task.RESIZE_REVERTING)
    if found is not None:
        migration, server = found
        if result.is_ok:
            _be_back(tx, migration, server, now)
            completion.end(tx, migration, MigrationStatus.REVERTED, now)
        else:
            undo_revert(tx, migration, server, told(order, result), now)


def _arrive(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    was_running = migration.old_state["status"] == Status.ACTIVE
    values = {
        "host": migration.dest_host,
        "provider_id": migration.dest_provider_id,
        "status": Status.VERIFY_RESIZE,
        "task_state": None,
        "power_state": Power.RUNNING if was_running else Power.SHUTDOWN,
        "launched_at": now,
        "fault": None,
        **moving.shape(migration.new_flavor),
    }
    servers.write(tx, server, values, now)
    migrations.change_status(tx, migration, MigrationStatus.FINISHED, now)
    actions.end(tx, server.uuid, migration.request_id, None, now)


def _stay(
    tx: Tx,
    migration: Migration,
    server: Server,
    message: str,
    now: datetime,
    *,
    is_unsure: bool,
    may_be_there: bool = False,
) -> None:
    """The server stays on its source. Where that has begun to let it go, it takes it back.

    ``may_be_there`` is said where the destination may have it as well, or its other size.
    """
    if migration.kind == MigrationKind.RESIZE:
        moving.count_down(tx, server.project_id, migration, migration.old_flavor)
    if may_be_there:
        completion.fall_back(tx, migration, server, message, now)
    else:
        moving.give_back(tx, migration, server, now)
        completion.end(tx, migration, MigrationStatus.ERROR, now, message)
    values: dict[str, Any] = {"task_state": None, "fault": servers.fault(message, now)}
    if is_unsure:
        values["task_state"] = Task.RESIZE_REVERTING
        moving.take_back(tx, migration, server, now)
    servers.write(tx, server, values, now)


def follow_return(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The source has the server again as it had it, or it has not."""
    if order.migration_id is None:
        return
    migration = migrations.by_id(tx, order.migration_id)
    if migration is None:
        return
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is not None and server.task_state == Task.RESIZE_REVERTING:
        _follow_returned(tx, migration, server, order, result, now)
    # Also where the server was deleted, or set right by hand, in the meantime. What its
    # destination could not destroy is asked for again.
    is_clear = migration.status == MigrationStatus.REVERTING and not transfers.held(
        tx, migration.uuid
    )
    has_its_size = migration.stays and migration.status in (
        MigrationStatus.FAILING,
        MigrationStatus.CANCELLING,
    )
    if is_clear or has_its_size:
        completion.finish(tx, migration, now)


def _follow_returned(
    tx: Tx, migration: Migration, server: Server, order: OpenOrder, result: Result, now: datetime
) -> None:
    if result.is_ok:
        _be_back(tx, migration, server, now)
        actions.end(tx, server.uuid, order.request_id, None, now)
        return
    values = {
        "task_state": None,
        "status": Status.ERROR,
        "fault": servers.fault(told(order, result), now, result.message),
    }
    servers.write(tx, server, values, now)
    actions.end(tx, server.uuid, order.request_id, told(order, result), now)


def _be_back(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    values = {**_was(migration.old_state), "task_state": None}
    servers.write(tx, server, values, now)


def _was(old_state: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": old_state["status"], "power_state": old_state["power_state"]}


def is_reverting(tx: Tx, migration: Migration, server: Server | None) -> bool:
    """Whether it is this migration from which its server goes back at the moment.

    Another one may have been left behind, and its destination clears away still.
    """
    if server is None or server.task_state != Task.RESIZE_REVERTING:
        return False
    if migration.status != MigrationStatus.REVERTING:
        return False
    return migrations.open_ones(tx, [server.uuid])[-1].id == migration.id


def clearing(tx: Tx, migration: Migration) -> bool:
    """Whether a host has still to destroy what is left of a migration's server.

    So it has while the server is being sent: what is destroyed now may yet arrive.
    """
    return is_told(tx, migration, OrderKind.DESTROY, OrderKind.SEND)


def is_told(tx: Tx, migration: Migration, *kinds: str) -> bool:
    """Whether an order of these kinds that is a part of a migration waits."""
    return any(
        each.kind in kinds and each.migration_id == migration.id
        for each in orders.waiting_about(tx, [migration.server_uuid])
    )


def undo_revert(tx: Tx, migration: Migration, server: Server, message: str, now: datetime) -> None:
    """The destination could not let the server go: there it is, and may be reverted again."""
    moving.swap(tx, migration, server, now)
    if migration.kind == MigrationKind.RESIZE:
        moving.count_up(tx, server.project_id, migration)
    migrations.change_status(tx, migration, MigrationStatus.FINISHED, now, message)
    values = {
        "task_state": None,
        "host": migration.dest_host,
        "provider_id": migration.dest_provider_id,
        "fault": servers.fault(message, now),
        **moving.shape(migration.new_flavor),
    }
    servers.write(tx, server, values, now)


def go_on_reverting(
    tx: Tx, migration: Migration, server: Server, now: datetime, request_id: str | None = None
) -> None:
    """Have the source run the server again, once; whether or not the destination is clear."""
    if not is_told(tx, migration, OrderKind.RETURN):
        moving.take_back(tx, migration, server, now, request_id=request_id)
