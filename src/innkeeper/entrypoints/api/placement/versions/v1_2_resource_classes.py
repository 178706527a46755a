"""Resource classes, and custom ones among them."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 2)
SUMMARY = (
    "Resource classes can be listed, shown, created, "
    "renamed and deleted; custom ones begin with `CUSTOM_`."
)
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
