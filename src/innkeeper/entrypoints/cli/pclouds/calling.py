"""Looks up pclouds by their names, with the Compute API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osc_lib import exceptions as osc_exceptions

from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.cli.calling import ApiClient, ComputeClient, found, rows

FLAVORS, PCLOUDS = "os-host-flavors", "os-pclouds"


def pcloud(connection: Any, text: str, *, is_for_guests: bool = False) -> dict[str, Any]:
    """Return the pcloud with this id or name.

    Several pclouds may have the same name, because any project can create a pcloud and add other
    projects to it. So a name is looked up in several sets, until one set has the name:

    - the pclouds that the caller's own project owns;
    - for an administrator, all pclouds;
    - if ``is_for_guests`` is true, the pclouds that the caller's project may use, but does not own.

    Raises :class:`CommandError` if no set has the name, or if several pclouds of the set have it.
    """
    compute = ComputeClient(connection.compute)
    if canonical_uuid(text) is not None:
        there = found(compute, (PCLOUDS, text))
        if there is not None:
            shown: dict[str, Any] = there["pcloud"]
            return shown
    named = _own(connection, text) or _of_others(compute, text, is_for_guests=is_for_guests)
    if not named:
        none = "No pcloud has" if is_for_guests else "The project owns no pcloud with"
        raise osc_exceptions.CommandError(f"{none} the name or ID '{text}'.")
    if len(named) > 1:
        ids = ", ".join(each["id"] for each in named)
        raise osc_exceptions.CommandError(
            f"{len(named)} pclouds are called '{text}'. Name one by its ID: {ids}."
        )
    return named[0]


def _own(connection: Any, name: str) -> list[dict[str, Any]]:
    mine = connection.session.get_project_id()
    if mine is None:
        return []
    query = {"name": name, "project_id": str(mine)}
    return list(rows(ComputeClient(connection.compute), (PCLOUDS,), "pclouds", query))


def _of_others(compute: ApiClient, name: str, *, is_for_guests: bool) -> list[dict[str, Any]]:
    # If the caller is not an administrator, the service lists the pclouds that the project may use,
    # with few fields.
    query = {"name": name, "all_projects": "true"}
    seen = list(rows(compute, (PCLOUDS,), "pclouds", query))
    whole = [each for each in seen if is_whole(each)]
    return whole or (seen if is_for_guests else [])


def is_whole(shown: Mapping[str, Any]) -> bool:
    """Return whether a pcloud has all fields, which only its owner and administrators see."""
    return "owner" in shown


def pcloud_id(connection: Any, text: str, *, is_for_guests: bool = False) -> str:
    """Return the id of the pcloud with this name or id; see :func:`pcloud`."""
    return str(pcloud(connection, text, is_for_guests=is_for_guests)["id"])


def own_project_id(connection: Any) -> str:
    """Return the project of the login. Raises :class:`CommandError` if the login has no project."""
    own = connection.session.get_project_id()
    if own is None:
        raise osc_exceptions.CommandError("The login has no project. Name a project.")
    return str(own)
