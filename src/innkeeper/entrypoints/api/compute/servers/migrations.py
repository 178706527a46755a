"""These handlers list, show, abort and force-complete migrations of servers.

Always true: a caller that may not see hosts gets null for host names, and cannot filter by host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.moves import Migration, MigrationKind, MigrationSelection, MigrationStatus
from innkeeper.entrypoints.api.compute.hosts.services import row_of
from innkeeper.entrypoints.api.compute.links import links_to, next_page
from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.compute.servers.acting import in_words, initiator
from innkeeper.entrypoints.api.compute.timestamps import changes, micros
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.moves import migrations
from innkeeper.systems.compute.moves.migrations import WrongMigrationState

ALL_RULE = "os_compute_api:os-migrations:index:all_projects"
HOSTS_RULE = "os_compute_api:os-migrations:index:host"
SERVER_HOSTS_RULE = "os_compute_api:servers:migrations:index:host"
UNDER_WAY = frozenset(
    {MigrationStatus.PREPARING, MigrationStatus.RUNNING, MigrationStatus.POST_MIGRATING}
)
NOTHING_MEASURED = {
    f"{what}_{how}_bytes": None
    for what in ("memory", "disk")
    for how in ("total", "processed", "remaining")
}
"""The progress of a live migration. It is always null, because drivers do not report progress."""


@dataclass(frozen=True, slots=True)
class AbortOptions:
    """Options that the microversion sets for aborts of live migrations."""

    reaches_queue: bool = True
    """Whether a live migration can be aborted while it is queued."""


async def index(call: Call) -> Answer:
    """List migrations, newest first."""
    filters = {name: values[-1] for name, values in call.query.items()}
    project_id = filters.get("project_id")
    if project_id is None or project_id != call.context.project_id:
        call.demand(ALL_RULE, project_id=call.context.project_id)
    shows_hosts = call.allows(HOSTS_RULE, project_id=call.context.project_id)
    # A filter by host would reveal hosts that the caller may not see.
    by_host = filters if shows_hosts else {}
    since, until = changes(filters)
    limit = limit_of(call)
    if limit == 0:
        return Answer(200, {"migrations": []})
    selection = MigrationSelection(
        limit=limit + 1,
        marker=filters.get("marker"),
        host=by_host.get("host"),
        source_host=by_host.get("source_compute"),
        server_uuid=filters.get("instance_uuid"),
        statuses=(filters["status"],) if "status" in filters else None,
        kind=filters.get("migration_type"),
        since=since,
        until=until,
        user_id=filters.get("user_id"),
        project_id=project_id,
    )
    page = await call.read(lambda tx: migrations.page(tx, selection))
    body: dict[str, Any] = {
        "migrations": [_listed(call, each, shows_hosts) for each in page[:limit]]
    }
    if len(page) > limit:
        body["migrations_links"] = next_page(call, "os-migrations", page[limit - 1].uuid)
    return Answer(200, body)


async def of_server(call: Call) -> Answer:
    """List a server's live migrations in progress."""
    server = await found(call)
    in_progress = await call.read(lambda tx: migrations.in_progress(tx, server.uuid))
    shows_hosts = call.allows(SERVER_HOSTS_RULE, project_id=server.project_id)
    return Answer(200, {"migrations": [_shown(each, shows_hosts) for each in in_progress]})


async def show(call: Call) -> Answer:
    """Show a server's live migration, if it is in progress."""
    server = await found(call)
    number, uuid = call.params["migration_id"], server.uuid
    try:
        migration_id = _number(call, server)
        migration = await call.read(lambda tx: migrations.get(tx, uuid, migration_id))
    except NotFound as error:
        raise NotFound(
            f"In-progress live migration {number} is not found for server {uuid}."
        ) from error
    if migration.kind != MigrationKind.LIVE:
        raise NotFound(f"Migration {number} for server {uuid} is not live-migration.")
    if migration.status not in UNDER_WAY:
        raise NotFound(f"Live migration {number} for server {uuid} is not in progress.")
    return Answer(200, {"migration": _shown(migration, shows_hosts=True)})


async def abort(call: Call) -> Answer:
    """Abort a live migration. This has no effect if the server has already moved."""
    server = await found(call)
    migration_id, caller = _number(call, server), initiator(call, server)
    in_queue = call.options.of(AbortOptions).reaches_queue
    try:
        await call.write(
            lambda tx: migrations.abort(
                tx, server.uuid, migration_id, caller, in_queue=in_queue, now=call.now
            )
        )
    except WrongMigrationState as error:
        raise _in_words(error, "abort live migration") from error
    except NotFound as error:
        raise _unknown(call, server) from error
    except Conflict as error:
        raise in_words(error, "abort live migration") from error
    return Answer(202)


async def force_complete(call: Call) -> Answer:
    """Force a live migration to complete."""
    server = await found(call)
    migration_id, caller = _number(call, server), initiator(call, server)
    try:
        await call.write(
            lambda tx: migrations.force_complete(
                tx, server.uuid, migration_id, caller, now=call.now
            )
        )
    except WrongMigrationState as error:
        raise _in_words(error, "force complete") from error
    except NotFound as error:
        # Nova returns 400 here, not 404.
        raise Invalid(_unknown(call, server).message) from error
    except Conflict as error:
        raise in_words(error, "force_complete") from error
    return Answer(202)


def _number(call: Call, server: Server) -> int:
    number = row_of(call.params["migration_id"])
    if number is None:
        raise _unknown(call, server)
    return number


def _unknown(call: Call, server: Server) -> NotFound:
    number = call.params["migration_id"]
    return NotFound(f"Migration {number} not found for instance {server.uuid}")


def _in_words(error: WrongMigrationState, action: str) -> Invalid:
    return Invalid(
        f"Migration {error.migration_id} state of instance {error.server_uuid} is "
        f"{error.status}. Cannot {action} while the migration is in this state."
    )


def _hosts(migration: Migration, shows_hosts: bool) -> dict[str, str | None]:
    source, dest = migration.source_host, migration.dest_host
    hosts = {
        "source_compute": source,
        "source_node": source,
        "dest_compute": dest,
        "dest_host": dest,
        "dest_node": dest,
    }
    return hosts if shows_hosts else dict.fromkeys(hosts)


def _facts(migration: Migration, shows_hosts: bool) -> dict[str, Any]:
    return {
        "id": migration.id,
        "uuid": migration.uuid,
        "status": migration.status,
        "created_at": micros(migration.created_at),
        "updated_at": micros(migration.updated_at),
        "user_id": migration.user_id,
        "project_id": migration.project_id,
        **_hosts(migration, shows_hosts),
    }


def _listed(call: Call, migration: Migration, shows_hosts: bool) -> dict[str, Any]:
    shown = {
        **_facts(migration, shows_hosts),
        "instance_uuid": migration.server_uuid,
        "migration_type": migration.kind,
        # Nova shows database ids here, which mean nothing to clients.
        "old_instance_type_id": None,
        "new_instance_type_id": None,
    }
    if migration.kind == MigrationKind.LIVE and migration.status in UNDER_WAY:
        path = f"servers/{migration.server_uuid}/migrations/{migration.id}"
        shown["links"] = links_to(call, path)
    return shown


def _shown(migration: Migration, shows_hosts: bool) -> dict[str, Any]:
    return {
        **_facts(migration, shows_hosts),
        "server_uuid": migration.server_uuid,
        **NOTHING_MEASURED,
    }
