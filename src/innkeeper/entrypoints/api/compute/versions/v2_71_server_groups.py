"""2.71: a server shown by itself names its groups."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import ONE, dropping
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 71)
SUMMARY = "A server shown by itself names its groups."
EDGES = (
    Edge("GET", ONE, down=dropping("server_groups")),
    Edge("PUT", ONE, down=dropping("server_groups")),
)
