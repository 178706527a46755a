"""Routes of what was done to servers, and of their migrations."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers import (
    action_schemas,
    history_schemas,
    instance_actions,
    migrations,
)
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Route

_ONE = "/v2.1/servers/{server_id}"
_ACTIONS = "os_compute_api:os-instance-actions"
_MIGRATIONS = "os_compute_api:servers:migrations"
_FORCED, _LISTED, _ABORTED = Version(2, 22), Version(2, 23), Version(2, 24)

HISTORY_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/os-instance-actions",
        instance_actions.index,
        f"{_ACTIONS}:list",
        "List what was done to a server.",
        query=history_schemas.ACTIONS,
    ),
    Route(
        "GET",
        f"{_ONE}/os-instance-actions/{{request_id}}",
        instance_actions.show,
        f"{_ACTIONS}:show",
        "Show one thing that was done to a server.",
    ),
    Route(
        "GET",
        "/v2.1/os-migrations",
        migrations.index,
        "os_compute_api:os-migrations:index",
        "List migrations.",
        query=history_schemas.MIGRATIONS,
    ),
    Route(
        "GET",
        f"{_ONE}/migrations",
        migrations.of_server,
        f"{_MIGRATIONS}:index",
        "List a server's live migrations that are under way.",
        since=_LISTED,
    ),
    Route(
        "GET",
        f"{_ONE}/migrations/{{migration_id}}",
        migrations.show,
        f"{_MIGRATIONS}:show",
        "Show a live migration that is under way.",
        since=_LISTED,
    ),
    Route(
        "DELETE",
        f"{_ONE}/migrations/{{migration_id}}",
        migrations.abort,
        f"{_MIGRATIONS}:delete",
        "Abort a live migration.",
        since=_ABORTED,
        success=(202,),
    ),
    Route(
        "POST",
        f"{_ONE}/migrations/{{migration_id}}/action",
        migrations.force_complete,
        f"{_MIGRATIONS}:force_complete",
        "Bring a live migration to its end.",
        body=action_schemas.FORCE_COMPLETE,
        since=_FORCED,
        success=(202,),
    ),
)
