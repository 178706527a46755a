"""Links in answers of the Compute API."""

from __future__ import annotations

from innkeeper.entrypoints.api.paging import next_query
from innkeeper.entrypoints.api.routing import Call

Links = list[dict[str, str]]


def links_to(call: Call, path: str) -> Links:
    """Return a resource's links: with the API version in the path, and without."""
    return [
        {"rel": "self", "href": f"{call.address}/v2.1/{path}"},
        {"rel": "bookmark", "href": f"{call.address}/{path}"},
    ]


def next_page(call: Call, path: str, marker: str) -> Links:
    """Return the link to the next page of a list, which begins after ``marker``."""
    return [{"rel": "next", "href": f"{call.address}/v2.1/{path}?{next_query(call, marker)}"}]
