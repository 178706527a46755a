"""These handlers show the Block Storage API's version documents, which need no token."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.routing import Answer, Call

UPDATED = "2026-01-01T00:00:00Z"


async def versions(call: Call) -> Answer:
    """List the API's only version."""
    return Answer(300, {"versions": [_version(call)]}, is_versionless=True)


async def version(call: Call) -> Answer:
    """Show v3 and its range of microversions."""
    return Answer(200, {"versions": [_version(call)]})


async def extensions(call: Call) -> Answer:
    """List the API's extensions (always empty)."""
    return Answer(200, {"extensions": []})


def _version(call: Call) -> dict[str, Any]:
    table = call.api.versions
    assert table is not None, "the Block Storage API has versions"
    return {
        "id": "v3.0",
        "status": "CURRENT",
        "version": str(table.newest),
        "min_version": str(table.oldest),
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{call.address}/v3/"}],
        "media-types": [
            {"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}
        ],
    }
