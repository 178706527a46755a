"""Migrations as people look at them, and live ones stopped or hurried on."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.compute import OrderKind, Task
from innkeeper.domain.errors import Invalid, NotFound, WrongState
from innkeeper.domain.moves import (
    ActionName,
    Asker,
    Migration,
    MigrationKind,
    MigrationSelection,
    MigrationStatus,
)
from innkeeper.store.queries.compute import migrations, server_actions
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import live, moving
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told

IN_PROGRESS = (MigrationStatus.PREPARING, MigrationStatus.RUNNING)


class WrongMigrationState(Invalid):
    """A migration is not in a state in which that may be done to it."""

    def __init__(self, migration: Migration, method: str) -> None:
        super().__init__(
            f"Migration {migration.id} of server {migration.server_uuid} is "
            f"{migration.status}. Cannot {method} while it is so."
        )
        self.migration_id = migration.id
        self.server_uuid = migration.server_uuid
        self.status = migration.status
        self.method = method


def page(tx: Tx, selection: MigrationSelection) -> list[Migration]:
    """Migrations, newest first; :class:`Invalid` for a marker that is none."""
    behind = None
    if selection.marker is not None:
        behind = migrations.by_uuid(tx, selection.marker)
        # Another project's is not there for who lists the migrations of one.
        if behind is None or selection.project_id not in (None, behind.project_id):
            raise Invalid(f"Marker {selection.marker} could not be found.")
    return migrations.page(tx, selection, behind)


def in_progress(tx: Tx, server_uuid: str) -> list[Migration]:
    """A server's live migrations that are under way."""
    selection = MigrationSelection(
        server_uuid=server_uuid, kind=MigrationKind.LIVE, statuses=IN_PROGRESS
    )
    return migrations.page(tx, selection, None)


def get(tx: Tx, server_uuid: str, migration_id: int) -> Migration:
    """One migration of a server; else :class:`NotFound`."""
    found = migrations.by_id(tx, migration_id) if 0 < migration_id < 2**63 else None
    if found is None or found.server_uuid != server_uuid:
        raise NotFound(f"Migration {migration_id} not found for server {server_uuid}")
    return found


def abort(
    tx: Tx, server_uuid: str, migration_id: int, asker: Asker, *, in_queue: bool, now: datetime
) -> None:
    """Have a live migration stop, and the server stay; one that has not begun if ``in_queue``.

    Where it was sent already by then, it has arrived, and nothing comes of this.
    """
    server = servers.get(tx, server_uuid)
    servers.demand_unlocked(server, may_override=asker.may_override)
    if server.task_state != Task.MIGRATING:
        raise WrongState(server.uuid, "task_state", server.task_state)
    migration = get(tx, server_uuid, migration_id)
    allowed = IN_PROGRESS if in_queue else (MigrationStatus.RUNNING,)
    if migration.kind != MigrationKind.LIVE or migration.status not in allowed:
        raise WrongMigrationState(migration, "abort live migration")
    server_actions.add(tx, server.uuid, ActionName.LIVE_MIGRATION_CANCEL, asker, now)
    if migration.status == MigrationStatus.PREPARING:
        live.stay(tx, migration, server, MigrationStatus.CANCELLING, now, "It was cancelled.")
        return
    _tell(tx, migration, OrderKind.ABORT, asker, now)


def force_complete(
    tx: Tx, server_uuid: str, migration_id: int, asker: Asker, *, now: datetime
) -> None:
    """Have a live migration end soon, whatever that costs the server."""
    server = servers.get(tx, server_uuid)
    servers.demand_unlocked(server, may_override=asker.may_override)
    if server.task_state != Task.MIGRATING:
        raise WrongState(server.uuid, "task_state", server.task_state)
    migration = get(tx, server_uuid, migration_id)
    if migration.kind != MigrationKind.LIVE or migration.status != MigrationStatus.RUNNING:
        raise WrongMigrationState(migration, "force complete")
    action = ActionName.LIVE_MIGRATION_FORCE_COMPLETE
    server_actions.add(tx, server.uuid, action, asker, now)
    _tell(tx, migration, OrderKind.HURRY, asker, now)


def _tell(tx: Tx, migration: Migration, kind: str, asker: Asker, now: datetime) -> None:
    is_told = moving.tell(
        tx, migration, migration.source_host, kind, {}, now, request_id=asker.request_id
    )
    assert is_told, "a host with a server on it is not forgotten"


def follow_request(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The source has stopped or hurried, or could not; the order to send tells the rest."""
    message = None if result.is_ok else told(order, result)
    actions.end(tx, order.server_uuid, order.request_id, message, now)
