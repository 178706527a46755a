"""The version document, which needs no token."""

from __future__ import annotations

from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call


async def show(call: Call) -> Answer:
    """Show the oldest and the newest microversion."""
    versions = call.api.versions
    assert versions is not None
    document = {
        "id": "v1.0",
        "min_version": str(versions.oldest),
        "max_version": str(versions.newest),
        "status": "CURRENT",
        # The link is empty, so it is relative to the address of this document.
        "links": [{"rel": "self", "href": ""}],
    }
    return Answer(body={"versions": [document]}, headers=caching.headers(call))
