"""Converts the query of a list of volumes to a selection for the volumes system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.volumes import Volume, VolumeSelection
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import DIGITS_MAX, limit_of
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.entrypoints.api.volumes.calling import flag, mapping
from innkeeper.systems.volumes import types

SORT_KEYS: Mapping[str, str] = {
    "id": "uuid",
    "name": "name",
    "display_name": "name",
    "size": "size_gb",
    "status": "status",
    "availability_zone": "availability_zone",
    "bootable": "is_bootable",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "volume_type_id": "type_id",
    "project_id": "project_id",
    "user_id": "user_id",
}
EXACT: Mapping[str, str] = {
    "id": "uuid",
    "name": "name",
    "display_name": "name",
    "status": "status",
    "availability_zone": "availability_zone",
    "user_id": "user_id",
    "image_id": "image_id",
    "source_volid": "source_uuid",
}
LIKE: Mapping[str, str] = {"name~": "name", "display_name~": "name", "description~": "description"}
FLAGS: Mapping[str, str] = {"bootable": "is_bootable", "multiattach": "is_multiattach"}
MOMENTS = ("created_at", "updated_at")
COMPARISONS = ("gt", "gte", "eq", "neq", "lt", "lte")
NEVER_THERE = ("group_id", "consistencygroup_id", "snapshot_id", "encryption_key_id")
"""No volume has the attributes of these filters."""


def selection(tx: Tx, call: Call) -> VolumeSelection:
    """Return the selection that the query describes. Raises :class:`Invalid` for a bad filter."""
    exact: dict[str, tuple[Any, ...]] = _projects(call)
    for name, column in EXACT.items():
        if (text := call.last(name)) is not None:
            exact[column] = (text,)
    for name, column in FLAGS.items():
        if (text := call.last(name)) is not None:
            exact[column] = (flag(name, text),)
    if (text := call.last("size")) is not None:
        if not (text.isascii() and text.isdigit()):
            raise Invalid("The filter 'size' must be a whole number.")
        exact["size_gb"] = (int(text[:DIGITS_MAX]),)
    named = call.last("volume_type_id") or call.last("volume_type")
    if named is not None:
        exact["type_id"] = tuple(
            each.id
            for each in types.listing(tx, call.context.project_id, is_admin=call.context.is_admin)
            if named in (each.uuid, each.name)
        )
    if any(call.last(name) is not None for name in NEVER_THERE):
        exact["uuid"] = ()
    return VolumeSelection(
        limit=limit_of(call),
        exact=exact,
        like={column: call.query[name][-1] for name, column in LIKE.items() if name in call.query},
        moments=tuple(_moments(call)),
        sort=_sort(call),
        marker=call.last("marker"),
        offset=int((call.last("offset") or "0")[:DIGITS_MAX]),
        accepts=_accepts(call),
    )


def _projects(call: Call) -> dict[str, tuple[Any, ...]]:
    if call.context.is_admin:
        if (project_id := call.last("project_id")) is not None:
            return {"project_id": (project_id,)}
        if call.last("all_tenants", "0") in (*TRUE_WORDS, "1"):
            return {}
    return {"project_id": (call.context.project_id or "",)}


def _sort(call: Call) -> tuple[tuple[str, bool], ...]:
    if (text := call.last("sort")) is not None:
        if "sort_key" in call.query or "sort_dir" in call.query:
            raise Invalid("The 'sort_key' and 'sort_dir' parameters cannot be used with 'sort'.")
        pairs = [part.strip().partition(":") for part in text.split(",")]
        wanted = [(key.strip(), way.strip() or "desc") for key, _, way in pairs]
    elif "sort_key" in call.query:
        wanted = [(call.query["sort_key"][-1].strip(), call.last("sort_dir", "desc") or "desc")]
    else:
        wanted = [("created_at", call.last("sort_dir", "desc") or "desc")]
    for key, way in wanted:
        if key not in SORT_KEYS:
            raise Invalid(f"Invalid sort key: {key}.")
        if way not in ("asc", "desc"):
            raise Invalid("Unknown sort direction, must be 'desc' or 'asc'.")
    return tuple((SORT_KEYS[key], way == "desc") for key, way in wanted)


def _moments(call: Call) -> list[tuple[str, str, datetime]]:
    found = []
    for name in MOMENTS:
        for part in (call.last(name) or "").split(","):
            if not part:
                continue
            comparison, colon, text = part.partition(":")
            if not colon or comparison not in COMPARISONS:
                comparison, text = "eq", part
            found.append((name, comparison, _moment(name, text)))
    return found


def _moment(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip().replace(" ", "+") if "T" in text else text)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError) as error:
        raise Invalid(f"The filter {name} has no valid time: {text[:100]}") from error


def _accepts(call: Call) -> Callable[[Volume], bool] | None:
    wanted = mapping(call, "metadata")
    of_image = mapping(call, "glance_metadata")
    if not wanted and not of_image:
        return None

    def accepts(volume: Volume) -> bool:
        return wanted.items() <= dict(volume.metadata).items() and all(
            volume.image_metadata.get(key) == value for key, value in of_image.items()
        )

    return accepts
