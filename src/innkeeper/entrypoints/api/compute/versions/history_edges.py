"""Edges of what is told about the past of servers: their actions and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from innkeeper.entrypoints.api.compute.versions.server_edges import ONE, Down, passing_over
from innkeeper.entrypoints.api.routing import Answer, Call

ACTIONS = f"{ONE}/os-instance-actions"
ACTION = f"{ONE}/os-instance-actions/{{request_id}}"
MIGRATIONS = "/v2.1/os-migrations"
SERVER_MIGRATIONS = f"{ONE}/migrations"
MIGRATION = f"{ONE}/migrations/{{migration_id}}"
unpaged = passing_over(("limit", "marker", "changes-since", "changes-before"))
"""A way up from when a listing had no pages: what was no parameter then is passed over."""


def actions_without(*keys: str) -> Down:
    """A way down that takes these keys from every action."""

    def drop(answer: Answer, call: Call) -> None:
        for action in _actions(answer):
            _drop(action, keys)

    return drop


def events_without(*keys: str) -> Down:
    """A way down that takes these keys from every event of an action."""

    def drop(answer: Answer, call: Call) -> None:
        for action in _actions(answer):
            for event in action.get("events", ()):
                _drop(event, keys)

    return drop


def migrations_without(*keys: str) -> Down:
    """A way down that takes these keys from every migration."""

    def drop(answer: Answer, call: Call) -> None:
        body = answer.body
        for migration in body["migrations"] if "migrations" in body else [body["migration"]]:
            _drop(migration, keys)

    return drop


def unlisted(answer: Answer, call: Call) -> None:
    """A way down that takes the link to the next page away."""
    for name in ("links", "migrations_links"):
        answer.body.pop(name, None)


def _actions(answer: Answer) -> Iterator[dict[str, Any]]:
    body = answer.body
    if "instanceActions" in body:
        yield from body["instanceActions"]
    else:
        yield body["instanceAction"]


def _drop(shown: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        shown.pop(key, None)
