"""These functions list servers of this zone and of the zones below it as one list.

Always true: each zone is asked for one page. Servers are sorted by the requested keys, and then by
id. If a sort key is a text, the databases of all zones should sort texts in the same way. The
default sort keys are not texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import zip_longest
from typing import Any

import msgspec

from innkeeper.domain.compute import Host, Server
from innkeeper.domain.errors import Invalid
from innkeeper.domain.listing import ServerSelection
from innkeeper.engine.transactions import Tx
from innkeeper.engine.zones.listing import AFTER, KEY_OF, ListQuestion, ZonePage
from innkeeper.engine.zones.neighbours import Neighbours
from innkeeper.entrypoints.api.compute.servers.selection import (
    HOST_FILTERS,
    PROJECTS,
    allowed_filters,
    shared_prefix,
)
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.zones.child_rows import ListRow

FOR_ZONES = frozenset({AFTER, KEY_OF, PROJECTS})
OWN_PARAMETERS = frozenset({"limit", "marker", *FOR_ZONES})
OWNERS = frozenset({"project_id", "tenant_id", "user_id"})
"""Parameters and sort columns with ids of owners. In a child zone, the id of an owner begins with
the prefix of the zone parent."""
NUMBER_MAX = 2**63 - 1
HOST = "host"
NOT_BY_HOST = (
    "Servers of several zones cannot be sorted by host, because a zone knows only its own hosts."
)


@dataclass(frozen=True, slots=True)
class OwnRow:
    """A server of this zone with its sort key."""

    key: tuple[object, ...]
    server: Server


@dataclass(frozen=True, slots=True)
class TreePage:
    """A page of servers in several zones, in the requested order.

    ``homes`` has this zone's hosts by name.

    ``missing`` has the child zones that did not answer. ``is_partial`` is true if any zone of the
    tree did not answer. If ``is_cut`` is true, the page ends early, because a child zone returned
    fewer servers than requested, to limit the size of its answer or of its page.
    """

    rows: Sequence[OwnRow | ListRow]
    homes: Mapping[str, Host]
    missing: Sequence[str]
    is_partial: bool
    is_cut: bool


def is_for_tree(call: Call) -> bool:
    """Return whether a list is for a zone parent, or may have servers of zones below this zone.

    Raises :class:`Invalid` if a user sends a parameter that is only for zone parents.
    """
    neighbours = call.site.neighbours
    if neighbours is None:
        return False
    if call.context.hop is None and not FOR_ZONES.isdisjoint(call.query):
        raise Invalid(f"Only zone parents may use {', '.join(sorted(FOR_ZONES))}.")
    return call.context.hop is not None or neighbours.tree.routes


async def page(call: Call, selected: ServerSelection, place: str) -> TreePage:
    """Return a page of servers of this zone and the zones below it."""
    neighbours = call.site.neighbours
    assert neighbours is not None, "the list is for a tree"
    question = _question(call, selected, place)
    after = _after(call, selected)
    if selected.marker is not None:
        after = await key_of(call, neighbours, selected, selected.marker, question)
        if after is None:
            raise Invalid(f"marker [{selected.marker}] not found")
    position = None if after is None else _key(after)
    asked = await neighbours.lists.asked(question)
    if not HOST_FILTERS.isdisjoint(allowed_filters(call)):
        # Do not ask child zones, because no zone knows the hosts of another zone.
        asked = []
    if asked and any(column == HOST for column, _ in selected.sort):
        raise Invalid(NOT_BY_HOST)
    pages, missing = await neighbours.lists.pages(asked, question, after)

    def read(tx: Tx) -> tuple[list[OwnRow], Mapping[str, Host]]:
        try:
            found = servers.page_in_tree(tx, selected, position)
        except (ValueError, TypeError) as error:
            raise Invalid(f"The parameter {AFTER} is not a sort key.") from error
        own = [OwnRow(tuple(key), server) for server, key in found]
        return own, servers.homes(tx, [each.server for each in own])

    own, homes = await call.read(read)
    rows = merged(selected, [own, *(each.rows for each in pages)])
    whole, is_cut = _whole(rows[: selected.limit], pages)
    is_partial = bool(missing) or any(each.is_partial for each in pages)
    return TreePage(whole, homes, missing, is_partial, is_cut)


def _whole(
    rows: Sequence[OwnRow | ListRow], pages: Sequence[ZonePage]
) -> tuple[Sequence[OwnRow | ListRow], bool]:
    """Return the rows up to the end of the first page that was cut, and whether a page was cut.

    If a child zone cut its page, the child zone's servers after the last row of this page are
    unknown.
    """
    ends = {each.rows[-1].uuid for each in pages if each.is_cut}
    for place, each in enumerate(rows, 1):
        if each.key[-1] in ends:
            return rows[:place], True
    return rows, False


async def key_of(
    call: Call,
    neighbours: Neighbours,
    selected: ServerSelection,
    uuid: str,
    question: ListQuestion | None = None,
    place: str = "servers",
) -> str | None:
    """Return the sort key of a server in this zone or a zone below it, as JSON.

    Returns ``None`` if the caller cannot see such a server.
    """

    def read(tx: Tx) -> str | None:
        marker = servers.marker(tx, uuid)
        projects = selected.exact.get("project_id")
        if marker is None or (projects is not None and marker.project_id not in projects):
            return None
        if not call.context.reaches(marker.project_id):
            return None
        return json.dumps(servers.tree_key_of(tx, selected, marker))

    own = await call.read(read)
    if own is not None:
        return own
    return await neighbours.lists.key_of(uuid, question or _question(call, selected, place))


def merged(
    selected: ServerSelection, pages: Sequence[Sequence[OwnRow | ListRow]]
) -> list[OwnRow | ListRow]:
    """Return the rows of all pages in the requested order."""
    falls = [is_descending for _, is_descending in selected.sort]
    falls.append(falls[-1] if falls else True)

    def compared(one: OwnRow | ListRow, other: OwnRow | ListRow) -> int:
        for first, second, is_falling in zip(one.key, other.key, falls, strict=False):
            if first != second:
                before = _is_before(first, second)
                return 1 if before == is_falling else -1
        return 0

    return sorted((each for some in pages for each in some), key=cmp_to_key(compared))


async def told_key(
    call: Call, neighbours: Neighbours, selected: ServerSelection, uuid: str
) -> str | None:
    """Return the sort key of a server as JSON. Its ids of owners lack the zone parent's prefix."""
    key = await key_of(call, neighbours, selected, uuid)
    return None if key is None else json.dumps(for_parent(call, selected, _key(key)))


def for_parent(call: Call, selected: ServerSelection, key: Sequence[object]) -> list[object]:
    """Return a sort key without the zone parent's prefix in the ids of owners."""
    assert call.context.hop is not None, "the caller is a zone parent"
    prefix = call.context.hop.parent.prefix
    return _with_owners(selected, key, lambda owner: owner.removeprefix(prefix))


def _after(call: Call, selected: ServerSelection) -> str | None:
    """Return the sort key in a zone parent's query.

    The parent's prefix is added to its ids of owners.
    """
    text, hop = call.last(AFTER), call.context.hop
    if text is None or hop is None:
        return None
    prefix = hop.parent.prefix
    return json.dumps(_with_owners(selected, _key(text), lambda owner: prefix + owner))


def _with_owners(
    selected: ServerSelection, key: Sequence[object], change: Callable[[str], str]
) -> list[object]:
    """Return a sort key with ``change`` applied to the ids of users and projects."""
    # A zone may send a key of any length.
    are_owners = [column in OWNERS for column, _ in selected.sort][: len(key)]
    return [
        change(each) if is_owner and isinstance(each, str) else each
        for each, is_owner in zip_longest(key, are_owners)
    ]


def _is_before(first: object, second: object) -> bool:
    try:
        return bool(first < second)  # type: ignore[operator]
    except TypeError:
        # If a child sends values of another type, any stable order will do.
        return str(first) < str(second)


def _key(text: str) -> list[Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"The parameter {AFTER} is not a sort key.") from error
    if not isinstance(found, list) or not all(map(_is_plain, found)):
        raise Invalid(f"The parameter {AFTER} is not a sort key.")
    return found


def _is_plain(value: object) -> bool:
    """Return whether every database can compare a value with a column of its type."""
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, int):
        return abs(value) <= NUMBER_MAX
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _question(call: Call, selected: ServerSelection, place: str) -> ListQuestion:
    assert call.api.versions is not None, "the Compute API has versions"
    newest = f"{call.api.versions.service_types[0]} {call.api.versions.newest}"
    prefix = "" if call.context.hop is None else call.context.hop.parent.prefix
    # Send only the filters that the caller may use, because a child zone applies all filters that
    # it gets.
    names = {*allowed_filters(call), "sort_key", "sort_dir"} - OWN_PARAMETERS
    query = [
        (name, prefix + value if name in OWNERS else value)
        for name, values in call.query.items()
        if name in names
        for value in values
    ]
    shared = None if call.context.hop is None else shared_prefix(call)
    if shared is not None:
        query.append((PROJECTS, shared))
    (project_id,) = selected.exact.get("project_id", (None,))
    return ListQuestion(
        f"/{place}",
        query,
        {"openstack-api-version": newest},
        call.context,
        call.address.removesuffix(call.mount),
        selected.limit,
        project_id,
        with_deleted=selected.is_deleted is not False,
        has_details=place != "servers",
        key_length=len(selected.sort) + 1,
    )
