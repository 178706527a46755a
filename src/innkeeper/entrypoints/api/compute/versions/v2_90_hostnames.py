"""2.90: owners give servers a hostname, see it, and find servers by it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.compute.servers.selection import ALL_FILTERS
from innkeeper.entrypoints.api.compute.versions import v2_94_long_hostnames
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    ONE,
    servers_in,
    wherever_booted,
    wherever_listed,
    wherever_shown,
)
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 90)
SUMMARY = "Owners give servers a hostname, and see it."
CREATE_BEFORE = without(v2_94_long_hostnames.CREATE_BEFORE, "hostname")
UPDATE_BEFORE = without(v2_94_long_hostnames.UPDATE_BEFORE, "hostname")


def _hide(answer: Answer, call: Call) -> None:
    for server in servers_in(answer):
        if "OS-EXT-SRV-ATTR:host" not in server:
            # It was shown to whoever may see the rest of these, and to nobody else.
            server.pop("OS-EXT-SRV-ATTR:hostname", None)


def _pass_over(call: Call) -> None:
    if not call.allows(ALL_FILTERS, project_id=call.context.project_id):
        call.query.pop("hostname", None)


EDGES = (
    *wherever_booted(CREATE_BEFORE),
    *wherever_shown(_hide),
    *wherever_listed(_pass_over),
    Edge("PUT", ONE, body_before=UPDATE_BEFORE),
)
