"""Routes of what was done to servers, and of their migrations."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_MANAGER
from innkeeper.entrypoints.api.compute.servers import (
    action_schemas,
    history_schemas,
    instance_actions,
    migrations,
)
from innkeeper.entrypoints.api.routing import Route, Rule

_ONE = "/v2.1/servers/{server_id}"
_ACTIONS = "os_compute_api:os-instance-actions"
_MIGRATIONS = "os_compute_api:servers:migrations"
_FORCED, _LISTED, _ABORTED = Version(2, 22), Version(2, 23), Version(2, 24)

HISTORY_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/os-instance-actions",
        instance_actions.index,
        Rule(f"{_ACTIONS}:list", PROJECT),
        "List what was done to a server.",
        query=history_schemas.ACTIONS,
    ),
    Route(
        "GET",
        f"{_ONE}/os-instance-actions/{{request_id}}",
        instance_actions.show,
        Rule(f"{_ACTIONS}:show", PROJECT),
        "Show one thing that was done to a server.",
    ),
    Route(
        "GET",
        "/v2.1/os-migrations",
        migrations.index,
        Rule("os_compute_api:os-migrations:index", PROJECT_MANAGER, "List a project's migrations."),
        "List migrations.",
        query=history_schemas.MIGRATIONS,
    ),
    Route(
        "GET",
        f"{_ONE}/migrations",
        migrations.of_server,
        Rule(f"{_MIGRATIONS}:index", PROJECT_MANAGER, "List a server's live migrations."),
        since=_LISTED,
    ),
    Route(
        "GET",
        f"{_ONE}/migrations/{{migration_id}}",
        migrations.show,
        Rule(f"{_MIGRATIONS}:show", ADMIN),
        "Show a live migration that is under way.",
        since=_LISTED,
    ),
    Route(
        "DELETE",
        f"{_ONE}/migrations/{{migration_id}}",
        migrations.abort,
        Rule(f"{_MIGRATIONS}:delete", PROJECT_MANAGER),
        "Abort a live migration.",
        since=_ABORTED,
        success=(202,),
    ),
    Route(
        "POST",
        f"{_ONE}/migrations/{{migration_id}}/action",
        migrations.force_complete,
        Rule(f"{_MIGRATIONS}:force_complete", PROJECT_MANAGER),
        "Bring a live migration to its end.",
        body=action_schemas.FORCE_COMPLETE,
        since=_FORCED,
        success=(202,),
    ),
)
