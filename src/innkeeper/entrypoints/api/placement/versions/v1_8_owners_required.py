"""Who writes allocations says for whom."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import listed
from innkeeper.entrypoints.api.placement.versions.shapes import CONSUMER_ALLOCATIONS

VERSION = Version(1, 8)
SUMMARY = "`project_id` and `user_id` are required in `PUT /allocations/{consumer}`."
EDGES = (Edge("PUT", CONSUMER_ALLOCATIONS, body_before=listed(has_owner=False)),)
