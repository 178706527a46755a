"""The arguments and functions that the commands for zones share.

Always true: the password of a child zone is never shown. The password of a zone parent is shown
only by the command that creates the password.
"""

from __future__ import annotations

from typing import Any

from osc_lib import exceptions as osc_exceptions

from innkeeper.entrypoints.cli.calling import ApiClient, call
from innkeeper.entrypoints.cli.commands import Arguments

ZONES, PARENTS = ("zones",), ("zones", "parents")
ZONE: Arguments = {"zone": {"metavar": "ZONE", "help": "name or ID of the child zone"}}
PARENT: Arguments = {"parent": {"metavar": "PARENT", "help": "name or ID of the zone parent"}}


def zone_id(compute: ApiClient, text: str) -> str:
    """Return the id of the child zone with this id or name.

    Raises :class:`CommandError` if no zone or several zones have it.
    """
    return _id_of(call(compute, "GET", ZONES)["zones"], text, "child zone")


def parent_id(compute: ApiClient, text: str) -> str:
    """Return the id of the zone parent with this id or name.

    Raises :class:`CommandError` if no parent or several parents have it.
    """
    return _id_of(call(compute, "GET", PARENTS)["zone_parents"], text, "zone parent")


def _id_of(listed: list[dict[str, Any]], text: str, what: str) -> str:
    for key in ("id", "name"):
        found = [str(each["id"]) for each in listed if each[key] == text]
        if len(found) > 1:
            raise osc_exceptions.CommandError(
                f"{len(found)} have the name '{text}'. Name one by its ID: {', '.join(found)}."
            )
        if found:
            return found[0]
    raise osc_exceptions.CommandError(f"No {what} has the name or ID '{text}'.")
