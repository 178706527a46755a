"""What microversions changed about the past of servers: their actions and migrations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.instance_actions import (
    EVENTS_RULE,
    InstanceActionOptions,
)
from innkeeper.entrypoints.api.compute.servers.migrations import AbortOptions
from innkeeper.entrypoints.api.compute.versions.edges import (
    ANYTHING,
    SERVER,
    dropping,
    ignoring,
    opened,
    parameters_without,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call

ACTIONS = f"{SERVER}/os-instance-actions"
ACTION = f"{SERVER}/os-instance-actions/{{request_id}}"
MIGRATIONS = "/v2.1/os-migrations"
SERVER_MIGRATIONS = f"{SERVER}/migrations"
MIGRATION = f"{SERVER}/migrations/{{migration_id}}"

_alive_only = with_options(InstanceActionOptions, shows_deleted=False)
_unpaged = ignoring("limit", "marker", "changes-since", "changes-before")


def _actions(answer: Answer) -> Iterable[dict[str, Any]]:
    body = answer.body
    found: list[dict[str, Any]]
    found = body["instanceActions"] if "instanceActions" in body else [body["instanceAction"]]
    return found


def _events(answer: Answer) -> Iterator[dict[str, Any]]:
    for action in _actions(answer):
        yield from action.get("events", ())


def _migrations(answer: Answer) -> Iterable[dict[str, Any]]:
    body = answer.body
    found: list[dict[str, Any]]
    found = body["migrations"] if "migrations" in body else [body["migration"]]
    return found


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
        "What was done to a server is told after its deletion, too.",
        (Edge("GET", ACTIONS, up=_alive_only), Edge("GET", ACTION, up=_alive_only)),
    ),
    Step(
        Version(2, 23),
        "Migrations have a kind; a server's live migrations can be listed and shown.",
        (Edge("GET", MIGRATIONS, down=dropping(_migrations, "migration_type", "links")),),
    ),
    Step(
        Version(2, 51),
        "Owners see the events of an action on their server.",
        (Edge("GET", ACTION, down=_events_by_rule),),
    ),
    Step(
        Version(2, 58),
        "`limit`, `marker` and changes-since on a server's actions, which show updated_at.",
        (
            Edge("GET", ACTIONS, query_before=ANYTHING, up=_unpaged, down=_drop_updated_at),
            Edge("GET", ACTIONS, down=_no_link),
            Edge("GET", ACTION, down=_drop_updated_at),
        ),
    ),
    Step(
        Version(2, 59),
        "`limit`, `marker` and changes-since on migrations, which show their uuid.",
        (
            Edge("GET", MIGRATIONS, query_before=_open_and_unpaged, up=_unpaged, down=_drop_uuid),
            Edge("GET", MIGRATIONS, down=_no_link),
            Edge("GET", SERVER_MIGRATIONS, down=_drop_uuid),
            Edge("GET", MIGRATION, down=_drop_uuid),
        ),
    ),
    Step(
        Version(2, 62),
        "Events of an action show hostId, and host to administrators.",
        (Edge("GET", ACTION, down=dropping(_events, "hostId", "host")),),
    ),
    Step(
        Version(2, 65),
        "A live migration can be aborted before it runs.",
        (Edge("DELETE", MIGRATION, up=with_options(AbortOptions, reaches_queue=False)),),
    ),
    Step(
        Version(2, 66),
        "Listings of what was done to a server, and of migrations, take changes-before.",
        (
            Edge("GET", ACTIONS, query_before=parameters_without("changes-before")),
            Edge("GET", MIGRATIONS, query_before=parameters_without("changes-before")),
        ),
    ),
    Step(
        Version(2, 80),
        "Migrations show user_id and project_id, and are listed by them.",
        (
            Edge(
                "GET",
                MIGRATIONS,
                query_before=parameters_without("user_id", "project_id"),
                up=ignoring("user_id", "project_id"),
                down=_drop_owners,
            ),
            Edge("GET", SERVER_MIGRATIONS, down=_drop_owners),
            Edge("GET", MIGRATION, down=_drop_owners),
        ),
    ),
    Step(
        Version(2, 84),
        "Events of an action show details to administrators.",
        (Edge("GET", ACTION, down=dropping(_events, "details")),),
    ),
)
