"""2.15: server groups can have soft policies, which are wishes."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping.schemas import CREATE_GROUP_BEFORE_2_15
from innkeeper.entrypoints.api.compute.versions.server_group_edges import ALL
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 15)
SUMMARY = "Server groups can have the policies soft-affinity and soft-anti-affinity."
EDGES = (Edge("POST", ALL, body_before=CREATE_GROUP_BEFORE_2_15),)
