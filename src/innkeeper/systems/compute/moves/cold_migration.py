"""Apply the results of the orders of cold migrations and resizes.

Always true: a result is applied only if the migration is still at the stage at which the order was
given. If the server was deleted or the move was cancelled in the meantime, the result has no
effect.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Power, Server, Status, Task
from innkeeper.domain.moves import Migration, MigrationKind, MigrationStatus
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import completion, moving
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, owner_message
from innkeeper.systems.placement import transfers


def open_move(
    tx: Tx, order: OpenOrder, status: str, task: str | None
) -> tuple[Migration, Server] | None:
    """Return the migration and the server of an order, or ``None`` if the order is outdated.

    The order is current if the migration has this status and the server has this task.
    """
    if order.migration_id is None:
        return None
    migration = migrations.by_id(tx, order.migration_id)
    server = server_rows.by_uuid(tx, order.server_uuid)
    if migration is None or migration.status != status:
        return None
    return None if server is None or server.task_state != task else (migration, server)


def apply_depart(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a ``depart`` order, with which the source prepares the server."""
    found = open_move(tx, order, MigrationStatus.MIGRATING, Task.RESIZE_MIGRATING)
    if found is None:
        return
    migration, server = found
    if not result.is_ok:
        _stay(tx, migration, server, owner_message(order, result), now, is_unsure=result.is_late)
        return
    assert migration.dest_host is not None, "a move begins with a destination"
    body = actions.order_body(server, migration.new_flavor)
    if not moving.give_order(tx, migration, migration.dest_host, OrderKind.ARRIVE, body, now):
        why = "The destination host does not exist any more."
        _stay(tx, migration, server, why, now, is_unsure=True)
        return
    migrations.change_status(tx, migration, MigrationStatus.POST_MIGRATING, now)
    servers.write(tx, server, {"task_state": Task.RESIZE_FINISH}, now)


def apply_arrive(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an ``arrive`` order, with which the destination takes the server."""
    _apply_last(tx, order, result, now, is_unsure=True)


def _apply_last(
    tx: Tx, order: OpenOrder, result: Result, now: datetime, *, is_unsure: bool
) -> None:
    found = open_move(tx, order, MigrationStatus.POST_MIGRATING, Task.RESIZE_FINISH)
    if found is None:
        return
    migration, server = found
    if result.is_ok:
        _arrive(tx, migration, server, now)
    else:
        # After a timeout, the server may have arrived, or may have its new size.
        is_late, why = result.is_late, owner_message(order, result)
        _stay(tx, migration, server, why, now, is_unsure=is_unsure, may_be_there=is_late)


def apply_resize(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a ``resize`` order, which changes a server's size on its host."""
    found = open_move(tx, order, MigrationStatus.REVERTING, Task.RESIZE_REVERTING)
    if found is None:
        _apply_last(tx, order, result, now, is_unsure=result.is_late)
        return
    migration, server = found
    if result.is_ok:
        _restore(tx, migration, server, now)
        completion.end(tx, migration, MigrationStatus.REVERTED, now)
    else:
        undo_revert(tx, migration, server, owner_message(order, result), now)


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
    """End a failed move. The server stays on its source.

    ``is_unsure`` means that the source may have prepared the server, and must run the server again.
    ``may_be_there`` means that the destination may also have the server. For a resize on the same
    host, ``may_be_there`` means that the server may have its new size.
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


def apply_return(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a ``return`` order, which makes the source run the server again."""
    if order.migration_id is None:
        return
    migration = migrations.by_id(tx, order.migration_id)
    if migration is None:
        return
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is not None and server.task_state == Task.RESIZE_REVERTING:
        _apply_returned(tx, migration, server, order, result, now)
    # The migration ends even if the server was deleted or reset. But if the destination has not
    # destroyed its copy, the migration stays open, and the cleanup is repeated later.
    is_clear = migration.status == MigrationStatus.REVERTING and not transfers.held(
        tx, migration.uuid
    )
    has_its_size = migration.stays and migration.status in (
        MigrationStatus.FAILING,
        MigrationStatus.CANCELLING,
    )
    if is_clear or has_its_size:
        completion.finish(tx, migration, now)


def _apply_returned(
    tx: Tx, migration: Migration, server: Server, order: OpenOrder, result: Result, now: datetime
) -> None:
    actions.end_by(tx, order, result, now)
    if result.is_ok:
        _restore(tx, migration, server, now)
        return
    fault = actions.fault_of(order, result, now)
    servers.write(tx, server, {"task_state": None, "status": Status.ERROR, "fault": fault}, now)


def _restore(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    old = {name: migration.old_state[name] for name in ("status", "power_state")}
    servers.write(tx, server, {**old, "task_state": None}, now)


def undo_revert(tx: Tx, migration: Migration, server: Server, message: str, now: datetime) -> None:
    """Undo a revert that failed.

    Afterwards, the server is on its destination again, and waits to be confirmed or reverted.
    """
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
