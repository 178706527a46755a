"""2.96: servers show the zone that their owner pinned them to."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import dropping, wherever_shown
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 96)
SUMMARY = "Servers show the availability zone they are pinned to."
EDGES = wherever_shown(dropping("pinned_availability_zone"))
