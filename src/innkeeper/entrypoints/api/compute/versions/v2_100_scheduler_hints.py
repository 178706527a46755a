"""2.100: servers show the hints they were booted with."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import dropping, wherever_shown
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 100)
SUMMARY = "Servers show their scheduler hints."
EDGES = wherever_shown(dropping("scheduler_hints"))
