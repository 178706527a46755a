"""Functions that the handlers of the Block Storage API share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.volumes import Volume
from innkeeper.engine.retry import VOLUMES
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api import paging
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.schema_types import FALSE_WORDS, TRUE_WORDS
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.making_volumes import VolumeContext
from innkeeper.systems.volumes import volumes

T = TypeVar("T")
ROOT = "/v3/"
"""The beginning of the paths of all routes."""


def owner(call: Call) -> str | None:
    """Return the project whose resources the caller may reach, or ``None`` for all projects."""
    return None if call.context.is_admin else call.context.project_id or ""


def one(tx: Tx, call: Call) -> Volume:
    """Return the volume in the path. Raises :class:`NotFound` if the caller may not reach it."""
    return volumes.get(tx, call.params["volume_id"], owner(call))


def size(name: str, given: int | str) -> int:
    """Return a size in GiB. Raises :class:`Invalid` if it is too large for the database.

    The schemas limit only sizes that are numbers, but clients may also send a size as a string.
    """
    size_gb = int(given)
    if size_gb > UNIT_MAX:
        raise Invalid(
            f"Invalid input for field/attribute {name}. Value: {given}. {given} is greater than "
            f"the maximum of {UNIT_MAX}"
        )
    return size_gb


async def decide(call: Call, work: Callable[[Tx, VolumeContext], T]) -> T:
    """Run ``work`` with a context for choosing pools. Repeat ``work`` after a conflict."""
    settings = call.site.settings.volumes

    def act(tx: Tx, context: DecisionContext) -> T:
        return work(tx, VolumeContext(context, settings))

    return await call.decide(act, VOLUMES)


def links(call: Call, path: str) -> list[dict[str, str]]:
    """Return the links of a resource."""
    inside = call.path_project or call.context.project_id or ""
    bookmark = f"{call.address}/{inside}/{path}" if inside else f"{call.address}/{path}"
    return [{"rel": "self", "href": place(call) + path}, {"rel": "bookmark", "href": bookmark}]


def place(call: Call) -> str:
    """Return the address under which the API's resources are.

    It contains the project id if the request's path contains it.
    """
    inside = f"{call.path_project}/" if call.path_project else ""
    return f"{call.address}{ROOT}{inside}"


def next_link(call: Call, name: str, found: Sequence[Any], limit: int) -> dict[str, Any]:
    """Return the link to the next page of a list; see :func:`paging.next_link`."""
    address = place(call) + call.route.path.removeprefix(ROOT)
    return paging.next_link(call, name, found, limit, attrgetter("uuid"), address)


def server_id(text: str | None) -> str | None:
    """Return a server's id in canonical form. Raises :class:`Invalid` if it is not a UUID.

    The server may belong to another service, and so be unknown here.
    """
    found = canonical_uuid(text) if text else None
    if text and found is None:
        raise Invalid(f"Invalid input for field/attribute instance_uuid. Value: {text}.")
    return found


def moment(value: datetime | None) -> str | None:
    """Format a timestamp for an answer, with microseconds. ``None`` stays ``None``."""
    return None if value is None else value.isoformat(timespec="microseconds")


def flag(name: str, value: Any) -> bool:
    """Return the boolean for a client's value.

    Raises :class:`Invalid` if the value is not a boolean.
    """
    if value in TRUE_WORDS:
        return True
    if value in FALSE_WORDS:
        return False
    raise Invalid(f"Invalid value '{value}' for {name}: it must be true or false.")


def marker_row(call: Call, find: Callable[[str], int]) -> int:
    """Return the row id of the marker, or 0 if the query has no marker."""
    text = call.last("marker")
    return 0 if text is None else find(text)


def mapping(call: Call, name: str) -> dict[str, str]:
    """Parse a filter such as ``{'a': 'b'}``, which OpenStack's clients write as Python literals."""
    text = call.last(name)
    if text is None:
        return {}
    try:
        found = ast.literal_eval(text)
        if isinstance(found, dict):
            # Very long numbers cannot be converted to a string.
            return {str(key): str(value) for key, value in found.items()}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise Invalid(f"The filter {name} must be a mapping such as {{'a': 'b'}}.") from error
    raise Invalid(f"The filter {name} must be a mapping such as {{'a': 'b'}}.")
