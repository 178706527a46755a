"""Version documents of the Reservation API, and the API's microversions.

The documents need no token.
"""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import VersionTable
from innkeeper.entrypoints.api.routing import Answer, Call

VERSIONS = VersionTable.of(("reservation",), Version(1, 0), Version(1, 0))


async def versions(call: Call) -> Answer:
    """List the API's only version. The status is 300, as in Blazar."""
    table = call.api.versions
    assert table is not None, "the Reservation API has versions"
    document = {
        "id": "v1.0",
        "status": "CURRENT",
        "min_version": str(table.oldest),
        "max_version": str(table.newest),
        "links": [{"rel": "self", "href": f"{call.address}/v1"}],
    }
    return Answer(300, {"versions": [document]}, is_versionless=True)
