"""2.66: listings can be asked for what changed before a moment."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.history_schemas import (
    ACTIONS_SINCE,
    MIGRATIONS_SINCE,
)
from innkeeper.entrypoints.api.compute.versions.history_edges import ACTIONS, MIGRATIONS
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    passing_over,
    wherever_listed,
)
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 66)
SUMMARY = "Listings of servers, their actions and migrations take changes-before."
EDGES = (
    *wherever_listed(passing_over(["changes-before"])),
    Edge("GET", ACTIONS, query_before=ACTIONS_SINCE),
    Edge("GET", MIGRATIONS, query_before=MIGRATIONS_SINCE),
)
