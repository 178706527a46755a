"""The size of a list's pages, and the link to the next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Call

T = TypeVar("T")

DIGITS_MAX = 18
"""The maximum number of digits of a number. A number with more digits would not fit the integers of
the store."""
PLACES = ("marker", "offset")
"""The parameters that say where a page begins."""


def limit_of(call: Call, size_least: int = 0) -> int:
    """Return the page size, which is the client's ``limit``, but at most ``page_size_max``.

    If ``page_size_max`` is below ``size_least``, the page size is at most ``size_least``.
    """
    size_max = max(call.site.settings.serving.page_size_max, size_least)
    text = call.last("limit")
    if text is None:
        return size_max
    if not (text.isascii() and text.isdigit()):
        raise Invalid("limit must be a non-negative integer")
    return min(int(text[:DIGITS_MAX]), size_max)


def is_lowered(call: Call, limit: int) -> bool:
    """Return whether the page size ``limit`` is below the ``limit`` of the client."""
    text = call.last("limit")
    return text is not None and int(text[:DIGITS_MAX]) > limit


def next_query(call: Call, marker: str) -> str:
    """Return the query of the next page, which is the current query with this marker.

    It has no offset, because the current page has already skipped these rows.
    """
    pairs = [
        (name, value)
        for name, values in call.query.items()
        if name not in PLACES
        for value in values
    ]
    return urlencode([*pairs, ("marker", marker)])


def next_link(
    call: Call,
    name: str,
    found: Sequence[T],
    limit: int,
    marker_of: Callable[[T], object],
    address: str | None = None,
) -> dict[str, Any]:
    """Return ``{name}_links`` with a link to the next page, if ``found`` exceeds ``limit``.

    ``address`` is the list's address, if it differs from the path of the route.
    """
    if not len(found) > limit > 0:
        return {}
    if address is None:
        address = call.address + call.route.path.format_map(call.params)
    query = next_query(call, str(marker_of(found[limit - 1])))
    return {f"{name}_links": [{"rel": "next", "href": f"{address}?{query}"}]}
