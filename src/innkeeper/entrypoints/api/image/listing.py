"""Converts the query of an image list into a selection for the compute system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.images import Image
from innkeeper.domain.listing import ImageSelection
from innkeeper.entrypoints.api.image.schemas import PARAMETERS, VISIBILITIES
from innkeeper.entrypoints.api.image.view import FIELDS
from innkeeper.entrypoints.api.routing import Call

SORT_KEYS = frozenset(
    {
        "name",
        "status",
        "container_format",
        "disk_format",
        "size",
        "id",
        "created_at",
        "updated_at",
        "owner",
        "visibility",
        "min_ram",
        "min_disk",
    }
)
_LISTS = ("id", "name", "status", "disk_format", "container_format")
"""Filters that also accept ``in:`` with several values."""
_EXACT = ("owner", "checksum", "os_hash_value")
_FLAGS = ("protected", "os_hidden")
_AMOUNTS = ("min_ram", "min_disk")
SIZE_MAX = 2**63 - 1


def selection(call: Call) -> ImageSelection:
    """Return the selection that the query describes. Raises :class:`Invalid` for a bad filter."""
    exact = _exact_filters(call)
    visibility = call.last("visibility")
    if visibility is not None and visibility != "all":
        if visibility not in VISIBILITIES:
            raise Invalid(f"Invalid visibility value: {visibility[:255]}")
        exact["visibility"] = (visibility,)
    is_searched = visibility in ("community", "all") or bool({"id", "owner"} & exact.keys())
    return ImageSelection(
        exact=exact,
        viewer=None if call.context.is_admin else call.context.project_id or "",
        # Community images are listed only in searches by visibility, id or owner.
        with_community=is_searched,
        size_bytes_min=_amount(call, "size_min", SIZE_MAX),
        size_bytes_max=_amount(call, "size_max", SIZE_MAX),
        sort=_sort(call),
        accepts=_accepts(call),
    )


def _exact_filters(call: Call) -> dict[str, tuple[Any, ...]]:
    exact: dict[str, tuple[Any, ...]] = {}
    for name in _LISTS:
        if name in call.query:
            exact[FIELDS[name]] = _values(call.query[name][-1])
    for name in _EXACT:
        if name in call.query:
            exact[FIELDS[name]] = (call.query[name][-1],)
    for name in _AMOUNTS:
        if name in call.query:
            exact[FIELDS[name]] = (_amount(call, name, UNIT_MAX),)
    for name in _FLAGS:
        if name in call.query:
            exact[FIELDS[name]] = (_flag(call, name),)
    # Hidden images are listed only on request.
    exact.setdefault("is_hidden", (False,))
    return exact


def _values(text: str) -> tuple[str, ...]:
    if not text.startswith("in:"):
        return (text.removeprefix("eq:"),)
    values: list[str] = []
    rest = text.removeprefix("in:")
    while rest:
        if rest.startswith('"'):
            value, quote, rest = rest[1:].partition('"')
            if not quote or (rest and not rest.startswith(",")):
                raise Invalid(
                    "Invalid filter value: a quoted value must end with a quote and then a comma."
                )
            rest = rest.removeprefix(",")
        else:
            value, _, rest = rest.partition(",")
        values.append(value)
    return tuple(values)


def _amount(call: Call, name: str, maximum: int) -> int | None:
    text = call.last(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f"Filter {name} must be a non-negative integer.")
    return maximum if len(text) > len(str(maximum)) else min(int(text), maximum)


def _flag(call: Call, name: str) -> bool:
    word = (call.last(name) or "").lower()
    if word not in ("true", "false"):
        raise Invalid(f"Filter {name} must be true or false.")
    return word == "true"


def _sort(call: Call) -> tuple[tuple[str, bool], ...]:
    if "sort" in call.query:
        if "sort_key" in call.query or "sort_dir" in call.query:
            raise Invalid("Old and new sorting syntax cannot be combined")
        pairs = [part.strip().partition(":") for part in (call.last("sort") or "").split(",")]
        requested = [(key, direction or "desc") for key, _, direction in pairs]
    else:
        keys = call.query.get("sort_key", ["created_at"])
        directions = call.query.get("sort_dir", ["desc"])
        if len(directions) not in (1, len(keys)):
            raise Invalid("Number of sort dirs does not match the number of sort keys")
        if len(directions) == 1:
            directions = directions * len(keys)
        requested = list(zip(keys, directions, strict=True))
    sort: dict[str, bool] = {}
    for key, direction in requested:
        if key not in SORT_KEYS:
            raise Invalid(f"Invalid sort key: {key[:255]}. It must be one of {sorted(SORT_KEYS)}")
        if direction not in ("asc", "desc"):
            raise Invalid(f"Invalid sort direction: {direction[:255]}")
        # A repeated sort key has no effect.
        sort.setdefault(FIELDS[key], direction == "desc")
    sort.setdefault("id", next(iter(sort.values())))
    return tuple(sort.items())


def _accepts(call: Call) -> Callable[[Image], bool] | None:
    tags = frozenset(call.query.get("tag", ()))
    properties = {name: values[-1] for name, values in call.query.items() if name not in PARAMETERS}
    if not tags and not properties:
        return None

    def accepts(image: Image) -> bool:
        return tags <= set(image.tags) and properties.items() <= image.properties.items()

    return accepts
