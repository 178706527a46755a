"""A step that changes nothing about the routes that are served."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 10)
SUMMARY = "Allocation candidates; not served yet."
EDGES: tuple[Edge, ...] = ()
