"""These handlers show the Compute API's version documents, and list its extensions.

Version documents need no token.
"""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.checks import ANYBODY
from innkeeper.entrypoints.api.routing import Answer, Call, Route, Rule

UPDATED = "2013-07-23T11:33:21Z"
"""The release date of API v2.1. It is the same in every implementation."""


async def versions(call: Call) -> Answer:
    """List the API's only version."""
    # This document predates microversions, so the answer has no version header.
    return Answer(200, {"versions": [_version(call)]}, is_versionless=True)


async def version(call: Call) -> Answer:
    """Show v2.1 and its range of microversions."""
    document = _version(call)
    openapi = call.address.removesuffix(call.mount) + "/openapi.json"
    document["links"].append({"rel": "describedby", "type": "application/json", "href": openapi})
    document["media-types"] = [
        {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
    ]
    return Answer(200, {"version": document})


async def extensions(call: Call) -> Answer:
    """List the API's extensions (always empty)."""
    return Answer(200, {"extensions": []})


def _version(call: Call) -> dict[str, Any]:
    table = call.api.versions
    assert table is not None, "the Compute API has versions"
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": str(table.newest),
        "min_version": str(table.oldest),
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{call.address}/v2.1/"}],
    }


DOCUMENT_ROUTES = (
    Route("GET", "", versions, None),
    # The trailing slash makes the route match paths with and without one.
    Route("GET", "/v2.1/", version, None),
    Route("GET", "/v2.1/extensions", extensions, Rule("os_compute_api:extensions", ANYBODY)),
)
