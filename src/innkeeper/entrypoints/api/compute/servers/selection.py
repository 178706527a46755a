"""This module converts the query of a server list into a selection for the compute system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import Forbidden, Invalid
from innkeeper.domain.listing import (
    Pattern,
    ServerSelection,
    StateCondition,
    TagCondition,
    parse_pattern,
)
from innkeeper.engine.zones.listing import FEW
from innkeeper.entrypoints.api.auth_zones import ALL_PROJECTS, NO_PROJECT
from innkeeper.entrypoints.api.compute.servers.list_schemas import (
    EXACT_COLUMNS,
    FOR_ALL_CALLERS,
    LIKE_COLUMNS,
    SORT_COLUMNS,
    TAG_FILTERS,
    TIMESTAMP_COLUMNS,
)
from innkeeper.entrypoints.api.compute.servers.states import WORDS, of_status, of_vm_state
from innkeeper.entrypoints.api.compute.timestamps import changes, parsed
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.schema_types import FALSE_WORDS, TRUE_WORDS
from innkeeper.systems.compute.servers.labels import TAGS_MAX

ALL_FILTERS = "os_compute_api:servers:allow_all_filters"
PAGE_WORDS = ("limit", "marker", "sort_key", "sort_dir")
HOST_FILTERS = frozenset({"host", "node"})
PROJECTS = "zone_projects"
"""If a zone parent lists servers of all its projects, this query parameter selects projects by a
prefix."""
NUMBER_DIGITS_MAX = 9
_TEXTS = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Options that the microversion sets for lists of servers.

    If ``rejects_unknown_status`` is true, an unknown status in the query is an error. Otherwise,
    the list is empty.
    """

    rejects_unknown_status: bool = True


def selection(call: Call, all_projects_rule: str) -> ServerSelection | None:
    """Return the servers that the query selects, or ``None`` if no server can match.

    Raises :class:`Invalid` for malformed values, and :class:`Forbidden` for lists that only
    administrators may request.
    """
    filters = allowed_filters(call)
    exact, like = _exact(filters), _patterns(filters)
    hop = call.context.hop
    if hop is None:
        exact.update(_scope(call, filters, all_projects_rule))
    else:
        exact = _of_parent(exact, hop.parent.prefix)
        prefix = shared_prefix(call)
        if prefix is None:
            if call.context.project_id is None:
                raise Forbidden(NO_PROJECT)
            exact["project_id"] = (call.context.project_id,)
        else:
            # The zone parent has checked its own policy. In this zone, all its projects have its
            # prefix.
            like["project_id"] = Pattern(((*prefix,),), starts=True)
    is_deleted = _deletion(call, filters)
    states = _states(call, filters)
    if not all(states):
        return None
    statuses = {state.status for each in states for state in each}
    if Status.DELETED in statuses:
        # A zone parent has checked its own policy.
        if hop is None and not call.allows(ALL_FILTERS, project_id=call.context.project_id):
            raise Forbidden("Only administrators may list deleted instances")
        is_deleted = True if statuses == {Status.DELETED} else None
    since, until = _periods(filters)
    return ServerSelection(
        # A zone parent takes a shorter page for a fault; see ``engine/zones/listing.py``.
        limit=limit_of(call, 0 if hop is None else FEW),
        is_deleted=is_deleted,
        exact=exact,
        like=like,
        since=since,
        until=until,
        tags=TagCondition(*(_tags(filters, name) for name in TAG_FILTERS)),
        metadata=_metadata(filters),
        availability_zone=filters.get("availability_zone"),
        states=states,
        sort=_sort(call),
        marker=call.last("marker"),
    )


def shared_prefix(call: Call) -> str | None:
    """Return the common prefix of the ids of all projects whose servers a zone parent lists.

    Returns ``None`` if the list is for a single project. If the zone parent lists servers for its
    own parent, the prefix of this second parent is appended.
    """
    assert call.context.hop is not None, "the caller is a zone parent"
    text = call.last(ALL_PROJECTS)
    if text is None or not _is_true(ALL_PROJECTS, text or "true"):
        return None
    return call.context.hop.parent.prefix + (call.last(PROJECTS) or "")


def _of_parent(exact: Mapping[str, tuple[Any, ...]], prefix: str) -> dict[str, tuple[Any, ...]]:
    """Add a zone parent's prefix to the ids of projects and users in its filters."""
    return {
        name: tuple(prefix + each for each in values)
        if name in ("project_id", "user_id")
        else values
        for name, values in exact.items()
    }


def allowed_filters(call: Call) -> dict[str, str]:
    """Return the filters in the query that the caller may use. All other filters are ignored."""
    filters = {name: values[-1] for name, values in call.query.items() if name not in PAGE_WORDS}
    if call.context.hop is not None:
        # The zone parent has checked its own policy. Filters must not reveal names of hosts to it.
        return {name: value for name, value in filters.items() if name not in HOST_FILTERS}
    if call.allows(ALL_FILTERS, project_id=call.context.project_id):
        return filters
    return {name: value for name, value in filters.items() if name in FOR_ALL_CALLERS}


def _scope(call: Call, filters: Mapping[str, str], rule: str) -> dict[str, tuple[Any, ...]]:
    """Return the filter by project or user that limits a list to the caller's servers.

    Returns no filter if the query has ``all_tenants``. Raises if policy denies ``all_tenants``.
    """
    text = filters.get(ALL_PROJECTS)
    if text is not None and _is_true(ALL_PROJECTS, text or "true"):
        call.demand(rule, project_id=call.context.project_id)
        return {}
    if call.context.project_id is None:
        return {"user_id": (call.context.user_id,)}
    return {"project_id": (call.context.project_id,)}


def _deletion(call: Call, filters: Mapping[str, str]) -> bool | None:
    if "deleted" in filters:
        return filters["deleted"] in TRUE_WORDS
    # A list of changed servers includes deleted servers.
    return None if "changes-since" in filters or "changes-before" in filters else False


def _states(call: Call, filters: Mapping[str, str]) -> tuple[tuple[StateCondition, ...], ...]:
    """Return the requested states.

    A server matches if it has at least one state of each inner tuple.
    """
    parts: list[tuple[StateCondition, ...]] = []
    if "status" in filters:
        words = {text.upper() for text in call.query["status"]}
        is_known = not words.isdisjoint(WORDS)
        if not is_known and call.options.of(SelectionOptions).rejects_unknown_status:
            raise Invalid("Invalid status value")
        parts.append(tuple(state for word in sorted(words) for state in of_status(word)))
    if "vm_state" in filters:
        parts.append(of_vm_state(filters["vm_state"].lower()))
    return tuple(parts)


def _exact(filters: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    exact: dict[str, tuple[Any, ...]] = {}
    for name, column in EXACT_COLUMNS.items():
        if name in filters:
            read, text = _READERS.get(name), filters[name]
            exact[column] = (text if read is None else read(name, text),)
    if filters.get("task_state") in ("None", "none", "null"):
        exact["task_state"] = (None,)
    return exact


def _is_true(name: str, text: str) -> bool:
    if text in TRUE_WORDS:
        return True
    if text in FALSE_WORDS:
        return False
    raise Invalid(f"Invalid value '{text}' for query parameter {name}: expected true or false.")


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS_MAX:
        raise Invalid(
            f"Invalid value '{text}' for query parameter {name}: "
            f"expected 1 to {NUMBER_DIGITS_MAX} digits."
        )
    return int(text)


def _flavor_id(_: str, text: str) -> str:
    return text.rpartition("/")[2]


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "config_drive": _is_true,
    "flavor": _flavor_id,
    "image": _flavor_id,
    "launch_index": _number,
    "locked": _is_true,
    "power_state": _number,
}


def _patterns(filters: Mapping[str, str]) -> dict[str, Pattern]:
    patterns = {}
    for name, column in LIKE_COLUMNS.items():
        if name in filters:
            pattern = parse_pattern(filters[name])
            if pattern is None:
                raise Invalid(f"The pattern in query parameter {name} has too many wildcards.")
            patterns[column] = pattern
    return patterns


def _tags(filters: Mapping[str, str], name: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(filters[name].split(","))) if name in filters else ()
    if len(tags) > TAGS_MAX:
        raise Invalid(f"Query parameter {name} has too many tags: use at most {TAGS_MAX}.")
    return tags


def _metadata(filters: Mapping[str, str]) -> dict[str, str]:
    if "metadata" not in filters:
        return {}
    try:
        return _TEXTS.decode(filters["metadata"])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(
            "Query parameter metadata must be a JSON object with string values."
        ) from error


def _periods(filters: Mapping[str, str]) -> tuple[dict[str, datetime], dict[str, datetime]]:
    since: dict[str, datetime] = {}
    until: dict[str, datetime] = {}
    for name, column in TIMESTAMP_COLUMNS.items():
        if name in filters:
            since[column] = parsed(name, filters[name]).replace(microsecond=0)
            until[column] = since[column] + timedelta(microseconds=999_999)
    first, last = changes(filters)
    if first is not None:
        since["updated_at"] = first
    if last is not None:
        until["updated_at"] = last
    return since, until


def _sort(call: Call) -> tuple[tuple[str, bool], ...]:
    keys = list(call.query.get("sort_key", ()))
    directions = list(call.query.get("sort_dir", ()))
    if len(directions) > max(len(keys), 1):
        raise Invalid("Sort direction size exceeds sort key size")
    descending = [word == "desc" for word in directions]
    default = descending[0] if descending else True
    is_of_parent = call.context.hop is not None
    if is_of_parent or not call.allows(ALL_FILTERS, project_id=call.context.project_id):
        hidden = [key for key in keys if key in ("host", "node")]
        if hidden:
            raise Forbidden(f"Only administrators can sort servers by {', '.join(hidden)}")
    order: dict[str, bool] = {}
    for number, key in enumerate(keys):
        column = SORT_COLUMNS.get(key)
        if column is not None:
            is_descending = descending[number] if number < len(descending) else default
            order.setdefault(column, is_descending)
    order.setdefault("created_at", default)
    return tuple(order.items())
