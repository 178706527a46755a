"""Checks of requests that the handlers of several APIs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Call


def project_and_user(call: Call) -> tuple[str, str]:
    """Return the caller's project and user.

    Raises :class:`Invalid` if the token has no project or user.
    """
    project_id, user_id = call.context.project_id, call.context.user_id
    if project_id is None or user_id is None:
        raise Invalid("This request needs a token that is scoped to a project.")
    return project_id, user_id


def demand_key(call: Call, items: Mapping[str, Any]) -> None:
    """Raise :class:`Invalid` if the key in the path is not among a body's items."""
    if call.params["key"] not in items:
        raise Invalid("Request body and URI mismatch")


def unknown_action(name: str) -> Invalid:
    """Return the error for an action that does not exist."""
    return Invalid(f"There is no such action: {name}")
