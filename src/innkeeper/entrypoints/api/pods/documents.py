"""Version documents of the Pods API, which need no token."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.routing import Answer, Call

UPDATED = "2015-09-09T00:00:00Z"
"""The date that the original API has in its documents."""


async def versions(call: Call) -> Answer:
    """List the API's only version."""
    return Answer(200, {"versions": [_version(call)]})


async def version(call: Call) -> Answer:
    """Show v1.0."""
    return Answer(200, {"version": _version(call)})


def _version(call: Call) -> dict[str, Any]:
    return {
        "id": "v1.0",
        "status": "CURRENT",
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{call.address}/v1.0/"}],
    }
