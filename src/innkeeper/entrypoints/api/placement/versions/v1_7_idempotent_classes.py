"""Resource classes created or confirmed by one idempotent request."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 7)
SUMMARY = "`PUT /resource_classes/{name}` creates a class or confirms it, and takes no body."
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
