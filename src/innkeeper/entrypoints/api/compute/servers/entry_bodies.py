"""Reads the entries of a build plan, or ids of servers, in a request of a zone parent.

A zone parent is another zone that may use this zone.

An entry is a sealed offer of a host for one server.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.names import NAME_MAX, NAME_PATTERN
from innkeeper.engine.zones.building import EntryToBuild
from innkeeper.entrypoints.api.compute.servers.schemas import COUNT_MAX, ENTRY_CHARS_MAX
from innkeeper.entrypoints.api.patterns import ENTRY_PATTERN, PLAIN_UUID_PATTERN


class EntryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry, and the server to build with it."""

    id: Annotated[str, Meta(pattern=PLAIN_UUID_PATTERN)]
    blob: Annotated[str, Meta(min_length=1, max_length=ENTRY_CHARS_MAX, pattern=ENTRY_PATTERN)]
    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, pattern=NAME_PATTERN)]
    launch_index: Annotated[int, Meta(ge=0, le=COUNT_MAX)]
    hostname: Annotated[str, Meta(min_length=1, max_length=NAME_MAX)] | msgspec.UnsetType = (
        msgspec.UNSET
    )


_entries = converter_to(list[EntryBody])


def entries_of(rows: Any) -> list[EntryToBuild]:
    """Return the entries in a body. Raises :class:`Invalid` for malformed entries."""
    try:
        told = _entries(rows)
    except msgspec.ValidationError as error:
        raise Invalid(f"The entries are invalid: {error}.") from error
    return [
        EntryToBuild(
            each.id,
            each.blob,
            each.name,
            None if each.hostname is msgspec.UNSET else each.hostname,
            each.launch_index,
        )
        for each in told
    ]


_ids = converter_to(list[Annotated[str, Meta(pattern=PLAIN_UUID_PATTERN)]])


def ids_of(rows: Any) -> tuple[ServerId, ...]:
    """Return the ids of servers in a body. Raises :class:`Invalid` for malformed ids."""
    try:
        return tuple(map(ServerId, _ids(rows)))
    except msgspec.ValidationError as error:
        raise Invalid(f"The servers are invalid: {error}.") from error
