"""2.16: servers show the state of their host to administrators."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import dropping, wherever_shown
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 16)
SUMMARY = "Servers show the state of their host to administrators."
EDGES = wherever_shown(dropping("host_status"))
