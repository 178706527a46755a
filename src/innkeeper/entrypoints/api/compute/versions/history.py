"""The changes that microversions made to instance actions and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.instance_actions import (
    EVENTS_RULE,
    InstanceActionOptions,
)
from innkeeper.entrypoints.api.compute.servers.migrations import AbortOptions
from innkeeper.entrypoints.api.compute.versions.edges import SERVER, opened
from innkeeper.entrypoints.api.edges import (
    ANYTHING,
    dropping,
    edges,
    ignoring,
    parameters_without,
    resources,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call

ACTIONS = f"{SERVER}/os-instance-actions"
ACTION = f"{SERVER}/os-instance-actions/{{request_id}}"
MIGRATIONS = "/v2.1/os-migrations"
SERVER_MIGRATIONS = f"{SERVER}/migrations"
MIGRATION = f"{SERVER}/migrations/{{migration_id}}"
LIVE = (("GET", SERVER_MIGRATIONS), ("GET", MIGRATION))

_alive_only = with_options(InstanceActionOptions, shows_deleted=False)
_unpaged = ignoring("limit", "marker", "changes-since", "changes-before")
_actions = resources("instanceActions", "instanceAction")
_migrations = resources("migrations", "migration")


def _events(answer: Answer) -> Iterator[dict[str, Any]]:
    for action in _actions(answer):
        yield from action.get("events", ())


def _events_by_rule(answer: Answer, call: Call) -> None:
    if not call.allows(EVENTS_RULE, project_id=call.context.project_id):
        del answer.body["instanceAction"]["events"]


def _no_link(answer: Answer, call: Call) -> None:
    for name in ("links", "migrations_links"):
        answer.body.pop(name, None)


def _open_and_unpaged(schema: Schema) -> Schema:
    return opened(parameters_without("limit", "marker", "changes-since")(schema))


_drop_updated_at = dropping(_actions, "updated_at")
_drop_uuid = dropping(_migrations, "uuid")
_drop_owners = dropping(_migrations, "user_id", "project_id")

STEPS = (
    Step(
        Version(2, 21),
        "The actions on a server are shown after its deletion, too.",
        edges((("GET", ACTIONS), ("GET", ACTION)), up=_alive_only),
    ),
    Step(
        Version(2, 23),
        "Migrations show their type. A server's live migrations can be listed and shown.",
        (Edge("GET", MIGRATIONS, down=dropping(_migrations, "migration_type", "links")),),
    ),
    Step(
        Version(2, 51),
        "The owner of a server sees the events of an action on the server.",
        (Edge("GET", ACTION, down=_events_by_rule),),
    ),
    Step(
        Version(2, 58),
        "Lists of a server's actions accept `limit`, `marker` and `changes-since`. "
        "Actions show `updated_at`.",
        (
            Edge("GET", ACTIONS, query_before=ANYTHING, up=_unpaged, down=_drop_updated_at),
            Edge("GET", ACTIONS, down=_no_link),
            Edge("GET", ACTION, down=_drop_updated_at),
        ),
    ),
    Step(
        Version(2, 59),
        "Lists of migrations accept `limit`, `marker` and `changes-since`. "
        "Migrations show their UUIDs.",
        (
            Edge("GET", MIGRATIONS, query_before=_open_and_unpaged, up=_unpaged, down=_drop_uuid),
            Edge("GET", MIGRATIONS, down=_no_link),
            *edges(LIVE, down=_drop_uuid),
        ),
    ),
    Step(
        Version(2, 62),
        "Events of an action show `hostId`. Administrators also see `host`.",
        (Edge("GET", ACTION, down=dropping(_events, "hostId", "host")),),
    ),
    Step(
        Version(2, 65),
        "A live migration can be aborted while it is queued.",
        (Edge("DELETE", MIGRATION, up=with_options(AbortOptions, reaches_queue=False)),),
    ),
    Step(
        Version(2, 66),
        "Lists of migrations and of a server's actions accept `changes-before`.",
        edges(
            (("GET", ACTIONS), ("GET", MIGRATIONS)),
            query_before=parameters_without("changes-before"),
        ),
    ),
    Step(
        Version(2, 80),
        "Migrations show `user_id` and `project_id`. Lists can be filtered by "
        "`user_id` and by `project_id`.",
        (
            Edge(
                "GET",
                MIGRATIONS,
                query_before=parameters_without("user_id", "project_id"),
                up=ignoring("user_id", "project_id"),
                down=_drop_owners,
            ),
            *edges(LIVE, down=_drop_owners),
        ),
    ),
    Step(
        Version(2, 84),
        "Events of an action show `details` to administrators.",
        (Edge("GET", ACTION, down=dropping(_events, "details")),),
    ),
)
