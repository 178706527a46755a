"""2.66: listings can be asked for what changed before a moment."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import (
    passing_over,
    wherever_listed,
)
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 66)
SUMMARY = "Listings of servers take changes-before."
EDGES = wherever_listed(passing_over(["changes-before"]))
