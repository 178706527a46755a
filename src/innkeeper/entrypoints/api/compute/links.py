"""These functions build the links in answers of the Compute API."""

from __future__ import annotations

from innkeeper.entrypoints.api.paging import next_query
from innkeeper.entrypoints.api.routing import Call

Links = list[dict[str, str]]


def links_to(call: Call, path: str) -> Links:
    """Return two links to a resource.

    The first has the API version in its path, the second does not.
    """
    return [
        {"rel": "self", "href": f"{call.address}/v2.1/{path}"},
        {"rel": "bookmark", "href": f"{call.address}/{path}"},
    ]


def next_page(call: Call, path: str, marker: str) -> Links:
    """Return the link to a list's next page, which begins after ``marker``."""
    return [{"rel": "next", "href": f"{call.address}/v2.1/{path}?{next_query(call, marker)}"}]
