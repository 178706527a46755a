"""2.9: servers show whether they are locked."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import dropping, wherever_shown
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 9)
SUMMARY = "Servers show whether they are locked."
EDGES = wherever_shown(dropping("locked"))
