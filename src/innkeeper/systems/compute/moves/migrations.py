"""Find and list migrations, and abort live migrations or force them to complete."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from innkeeper.domain.compute import Server, Task
from innkeeper.domain.errors import Invalid, NotFound, WrongState
from innkeeper.domain.moves import (
    ActionName,
    Initiator,
    Migration,
    MigrationKind,
    MigrationSelection,
    MigrationStatus,
)
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations, server_actions
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import live, moving
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result

IN_PROGRESS = (MigrationStatus.PREPARING, MigrationStatus.RUNNING)


class WrongMigrationState(Invalid):
    """The action is not possible in the state of the migration."""

    def __init__(self, migration: Migration, method: str) -> None:
        super().__init__(
            f"Migration {migration.id} of server {migration.server_uuid} is "
            f"{migration.status}. Cannot {method} in this state."
        )
        self.migration_id = migration.id
        self.server_uuid = migration.server_uuid
        self.status = migration.status
        self.method = method


def page(tx: Tx, selection: MigrationSelection) -> list[Migration]:
    """Return a page of migrations, newest first. Raises :class:`Invalid` for an unknown marker."""
    behind = None
    if selection.marker is not None:
        behind = migrations.by_uuid(tx, selection.marker)
        # A project must not learn that another project's migration exists.
        if behind is None or selection.project_id not in (None, behind.project_id):
            raise Invalid(f"Marker {selection.marker} could not be found.")
    return migrations.page(tx, selection, behind)


def in_progress(tx: Tx, server_uuid: str) -> list[Migration]:
    """Return a server's live migrations that are in progress."""
    selection = MigrationSelection(
        server_uuid=server_uuid, kind=MigrationKind.LIVE, statuses=IN_PROGRESS
    )
    return migrations.page(tx, selection, None)


def get(tx: Tx, server_uuid: str, migration_id: int) -> Migration:
    """Return one migration of a server. Raises :class:`NotFound`."""
    found = migrations.by_id(tx, migration_id) if 0 < migration_id < 2**63 else None
    if found is None or found.server_uuid != server_uuid:
        raise NotFound(f"Migration {migration_id} not found for server {server_uuid}")
    return found


def abort(
    tx: Tx,
    server_uuid: str,
    migration_id: int,
    initiator: Initiator,
    *,
    in_queue: bool,
    now: datetime,
) -> None:
    """Abort a running live migration. With ``in_queue``, the migration may also be in preparation.

    The abort has no effect if the server has already been sent.
    """
    allowed = IN_PROGRESS if in_queue else (MigrationStatus.RUNNING,)
    server, migration = _admitted(
        tx, server_uuid, migration_id, initiator, allowed, "abort live migration"
    )
    server_actions.add(tx, server.uuid, ActionName.LIVE_MIGRATION_CANCEL, initiator, now)
    if migration.status == MigrationStatus.PREPARING:
        live.stay(tx, migration, server, MigrationStatus.CANCELLING, now, "It was cancelled.")
        return
    moving.order_source(tx, migration, OrderKind.ABORT, {}, now, initiator.request_id)


def _admitted(
    tx: Tx,
    server_uuid: str,
    migration_id: int,
    initiator: Initiator,
    allowed: Collection[str],
    method: str,
) -> tuple[Server, Migration]:
    server = servers.get(tx, server_uuid)
    servers.demand_unlocked(server, may_override=initiator.may_override)
    if server.task_state != Task.MIGRATING:
        raise WrongState(server.uuid, "task_state", server.task_state)
    migration = get(tx, server_uuid, migration_id)
    if migration.kind != MigrationKind.LIVE or migration.status not in allowed:
        raise WrongMigrationState(migration, method)
    return server, migration


def force_complete(
    tx: Tx, server_uuid: str, migration_id: int, initiator: Initiator, *, now: datetime
) -> None:
    """Force a live migration to complete soon, even if the server has to be paused."""
    running = (MigrationStatus.RUNNING,)
    server, migration = _admitted(
        tx, server_uuid, migration_id, initiator, running, "force complete"
    )
    action = ActionName.LIVE_MIGRATION_FORCE_COMPLETE
    server_actions.add(tx, server.uuid, action, initiator, now)
    moving.order_source(tx, migration, OrderKind.HURRY, {}, now, initiator.request_id)


def apply_request(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Record the result of an abort or hurry order. The move ends with the send order's result."""
    actions.end_by(tx, order, result, now)
