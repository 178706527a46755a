"""Allocations of many consumers at once."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 13)
SUMMARY = "`POST /allocations` replaces what several consumers hold, all or nothing."
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
