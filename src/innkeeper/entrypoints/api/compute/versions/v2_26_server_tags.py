"""2.26: servers have tags, and can be found by them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.list_schemas import TAG_FILTERS
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    dropping,
    passing_over,
    wherever_listed,
    wherever_shown,
)
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 26)
SUMMARY = "Servers have tags, which listings can ask for."
EDGES = (
    *wherever_shown(dropping("tags")),
    *wherever_listed(passing_over(TAG_FILTERS)),
)
