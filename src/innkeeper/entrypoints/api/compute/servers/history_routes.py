"""These routes serve migrations and instance actions (a server's history)."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_MANAGER
from innkeeper.entrypoints.api.compute.servers import instance_actions, migrations
from innkeeper.entrypoints.api.compute.servers.action_schemas import FORCE_COMPLETE
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Route, Rule
from innkeeper.entrypoints.api.schema_types import ANY_VALUE, NUMBER_VALUE, query

_ACTIONS = "/v2.1/servers/{server_id}/os-instance-actions"
_LIVE = "/v2.1/servers/{server_id}/migrations"
_ACTION_RULE = "os_compute_api:os-instance-actions"
_LIVE_RULE = "os_compute_api:servers:migrations"
_FORCED, _LISTED, _ABORTED = Version(2, 22), Version(2, 23), Version(2, 24)

_PAGES: Mapping[str, Schema] = {
    "limit": NUMBER_VALUE,
    "marker": ANY_VALUE,
    "changes-since": ANY_VALUE,
    "changes-before": ANY_VALUE,
}
_MIGRATIONS = query(
    {
        "hidden": ANY_VALUE,
        "host": ANY_VALUE,
        "instance_uuid": ANY_VALUE,
        "source_compute": ANY_VALUE,
        "status": ANY_VALUE,
        "migration_type": ANY_VALUE,
        **_PAGES,
        "user_id": ANY_VALUE,
        "project_id": ANY_VALUE,
    }
)

HISTORY_ROUTES = (
    Route(
        "GET",
        _ACTIONS,
        instance_actions.index,
        Rule(f"{_ACTION_RULE}:list", PROJECT),
        query=query(_PAGES),
    ),
    Route(
        "GET",
        f"{_ACTIONS}/{{request_id}}",
        instance_actions.show,
        Rule(f"{_ACTION_RULE}:show", PROJECT),
    ),
    Route(
        "GET",
        "/v2.1/os-migrations",
        migrations.index,
        Rule("os_compute_api:os-migrations:index", PROJECT_MANAGER),
        query=_MIGRATIONS,
    ),
    Route(
        "GET",
        _LIVE,
        migrations.of_server,
        Rule(f"{_LIVE_RULE}:index", PROJECT_MANAGER),
        since=_LISTED,
    ),
    Route(
        "GET",
        f"{_LIVE}/{{migration_id}}",
        migrations.show,
        Rule(f"{_LIVE_RULE}:show", ADMIN, is_about_hosts=True),
        since=_LISTED,
    ),
    Route(
        "DELETE",
        f"{_LIVE}/{{migration_id}}",
        migrations.abort,
        Rule(f"{_LIVE_RULE}:delete", PROJECT_MANAGER),
        since=_ABORTED,
        success=(202,),
    ),
    Route(
        "POST",
        f"{_LIVE}/{{migration_id}}/action",
        migrations.force_complete,
        Rule(f"{_LIVE_RULE}:force_complete", PROJECT_MANAGER),
        body=FORCE_COMPLETE,
        since=_FORCED,
        success=(202,),
    ),
)
