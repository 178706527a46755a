"""End moves, either at once or after a host has destroyed its copy of the server.

Always true: the step that ends a migration releases the migration's allocations. After a migration,
the server is on the source or on the destination. The migration ends only when the other host has
no copy of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Power, Server, Status, Task
from innkeeper.domain.errors import Invalid
from innkeeper.domain.moves import (
    COUNTED_TWICE,
    IN_FLIGHT,
    ActionName,
    Initiator,
    Migration,
    MigrationKind,
    MigrationStatus,
)
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations, orders, server_actions
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import moving
from innkeeper.systems.compute.servers import actions, servers, volume_orders
from innkeeper.systems.placement import claims

CARRIED = frozenset({MigrationKind.RESIZE, MigrationKind.MIGRATION})
"""The kinds of moves in which the server is shut down on its source."""
BEFORE_ORDER = frozenset({MigrationStatus.MIGRATING})
"""The stages at which the destination has not been given an order for the server."""
OVER: Mapping[str, str] = {
    MigrationStatus.CONFIRMING: MigrationStatus.CONFIRMED,
    MigrationStatus.CANCELLING: MigrationStatus.CANCELLED,
    MigrationStatus.DONE: MigrationStatus.COMPLETED,
    MigrationStatus.REVERTING: MigrationStatus.REVERTED,
    MigrationStatus.FAILING: MigrationStatus.ERROR,
}
"""The final status of a migration, by its status during the cleanup. Only a failed evacuation ends
in the status ``FAILED`` instead of ``ERROR``."""


def end(
    tx: Tx, migration: Migration, status: str, now: datetime, message: str | None = None
) -> None:
    """End a migration and release its allocations."""
    claims.release(tx, [migration.uuid], now)
    _move_on(tx, migration, status, now, message)
    if server_rows.by_uuid(tx, migration.server_uuid) is None:
        volume_orders.servers_gone(tx, [migration.server_uuid], now)


def finish(tx: Tx, migration: Migration, now: datetime) -> None:
    """End a migration whose cleanup is complete."""
    end(tx, migration, _outcome(migration, migration.status), now)


def _outcome(migration: Migration, status: str) -> str:
    if status == MigrationStatus.FAILING and migration.kind == MigrationKind.EVACUATION:
        return MigrationStatus.FAILED
    return OVER[status]


def _move_on(tx: Tx, migration: Migration, status: str, now: datetime, message: str | None) -> None:
    migrations.change_status(tx, migration, status, now, message)
    if message is not None:
        actions.end(tx, migration.server_uuid, migration.request_id, message, now)


def leave_behind(
    tx: Tx,
    migration: Migration,
    status: str,
    now: datetime,
    *,
    request_id: str | None = None,
    message: str | None = None,
) -> None:
    """Order a host to destroy its copy of a server, and keep the allocations until it confirms.

    ``status`` is the migration's new status, which decides whether the source or the destination
    cleans up. If source and destination are the same host, or if the host to clean up no longer
    exists, the migration ends at once.
    """
    host = replace(migration, status=status).left_on
    if migration.stays or not moving.clear(tx, migration, host, now, request_id=request_id):
        end(tx, migration, _outcome(migration, status), now, message)
    else:
        _move_on(tx, migration, status, now, message)


def fall_back(
    tx: Tx,
    migration: Migration,
    server: Server,
    message: str,
    now: datetime,
    *,
    status: str = MigrationStatus.FAILING,
) -> None:
    """Leave a server on its source, and order the destination to clean up.

    For a resize on the same host, the caller must order the host to restore the old size.
    """
    moving.swap(tx, migration, server, now)
    if migration.stays:
        _move_on(tx, migration, status, now, message)
    else:
        leave_behind(tx, migration, status, now, message=message)


def end_moves(tx: Tx, server: Server, now: datetime, *, is_kept: bool = False) -> None:
    """Cancel or confirm all moves of a server, which stays on its current host.

    Afterwards, the server has the allocations on its host, and the migrations have the allocations
    on the hosts that must clean up. The source of a live migration is ordered to abort.

    ``is_kept`` means that the server is not being deleted. The source of a cold migration is then
    ordered to run the server again. A live migration may already have moved the server, so the
    allocations on both hosts are kept until the source reports.
    """
    for each in migrations.open_ones(tx, [server.uuid]):
        if each.kind == MigrationKind.RESIZE and each.status in COUNTED_TWICE:
            moving.count_down(tx, server.project_id, each, server.flavor)
        if each.status == MigrationStatus.RUNNING:
            moving.give_order(tx, each, each.source_host, OrderKind.ABORT, {}, now)
        if each.status in IN_FLIGHT and not (is_kept and each.status == MigrationStatus.RUNNING):
            _turn_back(tx, each, server, now, is_kept=is_kept)
        elif each.status == MigrationStatus.FINISHED:
            leave_behind(tx, each, MigrationStatus.CONFIRMING, now)


def _turn_back(tx: Tx, each: Migration, server: Server, now: datetime, *, is_kept: bool) -> None:
    if is_kept and each.kind in CARRIED:
        # The server may already be shut down, or may have its new size.
        moving.take_back(tx, each, server, now)
    if is_kept and each.stays:
        moving.swap(tx, each, server, now)
        migrations.change_status(tx, each, MigrationStatus.CANCELLING, now)
    elif each.stays or each.status in BEFORE_ORDER:
        moving.give_back(tx, each, server, now)
        end(tx, each, MigrationStatus.CANCELLED, now)
    else:
        moving.swap(tx, each, server, now)
        leave_behind(tx, each, MigrationStatus.CANCELLING, now)


def is_reverting(tx: Tx, migration: Migration, server: Server | None) -> bool:
    """Return True if this migration of the server is being reverted.

    The status of the migration alone does not show this. An older migration of the server also has
    the status of a revert until its destination has cleaned up.
    """
    if server is None or server.task_state != Task.RESIZE_REVERTING:
        return False
    if migration.status != MigrationStatus.REVERTING:
        return False
    return migrations.open_ones(tx, [server.uuid])[-1].id == migration.id


def is_clearing(tx: Tx, migration: Migration) -> bool:
    """Return True if a host has a pending order to destroy the copy that a migration left there.

    A pending send order also counts, because the server may arrive after the host has cleaned up.
    """
    return has_order(tx, migration, OrderKind.DESTROY, OrderKind.SEND)


def has_order(tx: Tx, migration: Migration, *kinds: str) -> bool:
    """Return True if an order of one of these kinds is pending for a migration."""
    return any(
        each.kind in kinds and each.migration_id == migration.id
        for each in orders.waiting_about(tx, [migration.server_uuid])
    )


def resume_revert(
    tx: Tx, migration: Migration, server: Server, now: datetime, request_id: str | None = None
) -> None:
    """Order the source to run the server again, if no such order is pending.

    The source does not wait until the destination has cleaned up.
    """
    if not has_order(tx, migration, OrderKind.RETURN):
        moving.take_back(tx, migration, server, now, request_id=request_id)


def reset_state(tx: Tx, uuid: str, initiator: Initiator, *, status: str, now: datetime) -> None:
    """Set the status of a server to ACTIVE or ERROR, and clear its task.

    A server without a host cannot be ACTIVE. All moves of the server end. See :func:`end_moves`. If
    the server is being reverted, its source is ordered to run the server again.
    """
    server = servers.get(tx, uuid)
    values: dict[str, Any] = {"status": status, "task_state": None}
    if status == Status.ACTIVE:
        servers.demand_host(server)
        values |= {"power_state": Power.RUNNING, "launched_at": server.launched_at or now}
    elif status != Status.ERROR:
        raise Invalid(f"The state of a server cannot be reset to {status}.")
    for each in migrations.open_ones(tx, [server.uuid]):
        if is_reverting(tx, each, server) and not each.stays:
            resume_revert(tx, each, server, now)
    end_moves(tx, server, now, is_kept=True)
    servers.write(tx, server, values, now)
    server_actions.add(tx, server.uuid, ActionName.RESET_STATE, initiator, now)
