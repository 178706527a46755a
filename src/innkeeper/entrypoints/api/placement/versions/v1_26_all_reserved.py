"""All that a provider has may be set aside."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import INVENTORIES, INVENTORY
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 26)
SUMMARY = "`reserved` may be as large as `total`."
LEAVES_SOME = "something is left unreserved"
"""Term of a call: an inventory of which nothing can be had is refused."""


def _leave_some(call: Call) -> None:
    call.terms.add(LEAVES_SOME)


EDGES = (
    Edge("PUT", INVENTORIES, up=_leave_some),
    Edge("POST", INVENTORIES, up=_leave_some),
    Edge("PUT", INVENTORY, up=_leave_some),
)
