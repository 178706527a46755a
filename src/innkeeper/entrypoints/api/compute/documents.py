"""The Compute API's version documents, open to everybody, and its list of extensions."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.routing import Answer, Call

UPDATED = "2013-07-23T11:33:21Z"
"""When the public API v2.1 began, which every service of it says here."""


async def versions(call: Call) -> Answer:
    """List the API's versions: there is one."""
    return Answer(200, {"versions": [_version(call)]}, _no_version())


async def version(call: Call) -> Answer:
    """Describe v2.1; clients read from it which microversions they may ask for."""
    document = _version(call)
    described = call.address.removesuffix(call.mount) + "/openapi.json"
    document["links"].append({"rel": "describedby", "type": "application/json", "href": described})
    document["media-types"] = [
        {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
    ]
    return Answer(200, {"version": document})


async def extensions(call: Call) -> Answer:
    """No extensions: since v2.1 all of the API is one whole."""
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


def _no_version() -> dict[str, str]:
    # The list of versions is older than microversions and speaks none of them.
    return {"x-innkeeper-versionless": "yes"}
