"""2.40: usage is shown in pages of servers."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.schemas import USAGES_UNPAGED
from innkeeper.entrypoints.api.compute.accounts.usage import UNPAGED
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 40)
SUMMARY = "`limit` and `marker` page through the servers of a usage."


def _whole(call: Call) -> None:
    call.query.pop("limit", None)
    call.query.pop("marker", None)
    call.params[UNPAGED] = "yes"


EDGES = (
    Edge("GET", "/v2.1/os-simple-tenant-usage", query_before=USAGES_UNPAGED, up=_whole),
    Edge(
        "GET",
        "/v2.1/os-simple-tenant-usage/{project_id}",
        query_before=USAGES_UNPAGED,
        up=_whole,
    ),
)
