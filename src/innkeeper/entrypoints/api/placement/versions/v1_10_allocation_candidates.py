"""Where a request could be served."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 10)
SUMMARY = (
    "`GET /allocation_candidates` lists ways to serve a request: whole sets of allocations, "
    "and a summary of the providers in them."
)
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
