"""Reads the options of a lease, which are its sharing, a new owner, and an early end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.leases.sharing import PROJECTS_MAX, LeaseOptions

SHARED_WITH, GRACE, PROJECT = "shared_with", "idle_grace_minutes", "project_id"
GRACE_MAX_MIN = 366 * 24 * 60
MINUTE_S = 60


def take(body: Mapping[str, Any]) -> tuple[LeaseOptions, dict[str, Any]]:
    """Return the options in a body, and the body without the options."""
    options: LeaseOptions = {}
    if SHARED_WITH in body:
        options["shared_with"] = _projects(body[SHARED_WITH])
    if GRACE in body:
        options["idle_grace_s"] = _grace_s(body[GRACE])
    if PROJECT in body:
        given = body[PROJECT]
        options["project_id"] = None if given is None else _project(PROJECT, given)
    rest = {name: each for name, each in body.items() if name not in (SHARED_WITH, GRACE, PROJECT)}
    return options, rest


def _projects(given: Any) -> tuple[str, ...]:
    found = () if given is None else given
    if not isinstance(found, list | tuple) or len(found) > PROJECTS_MAX:
        raise Invalid(
            f"Malformed parameter {SHARED_WITH}: use a list of at most {PROJECTS_MAX} project ids"
        )
    return tuple(_project(SHARED_WITH, each) for each in found)


def _project(name: str, given: Any) -> str:
    is_id = isinstance(given, str) and 0 < len(given) <= PROJECT_ID_MAX
    # Text that could not be decoded contains U+FFFD. Some databases reject lone surrogates.
    if not is_id or not given.isprintable() or given.strip() != given or "\ufffd" in given:
        raise Invalid(f"Malformed parameter {name}: use the id of a project")
    return str(given)


def _grace_s(given: Any) -> int | None:
    if given is None:
        return None
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number or not 1 <= given <= GRACE_MAX_MIN:
        raise Invalid(
            f"Malformed parameter {GRACE}: use null or a number from 1 to {GRACE_MAX_MIN}"
        )
    return int(given) * MINUTE_S
