"""A step that changes nothing about the routes that are served."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 27)
SUMMARY = "All classes in the summaries of allocation candidates, which are not served yet."
EDGES: tuple[Edge, ...] = ()
