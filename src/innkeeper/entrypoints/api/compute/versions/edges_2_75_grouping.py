"""What 2.75 changed about server groups: the query of their list is closed."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping.schemas import GROUPS_OPEN
from innkeeper.entrypoints.api.compute.versions.server_group_edges import ALL
from innkeeper.entrypoints.api.microversions import Edge

EDGES = (Edge("GET", ALL, query_before=GROUPS_OPEN),)
