"""What projects hold."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 9)
SUMMARY = "`GET /usages` shows how much a project holds, or one user of it."
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
