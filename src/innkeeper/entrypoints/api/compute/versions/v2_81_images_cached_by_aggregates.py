"""2.81: an aggregate's hosts can be asked to cache images, which is refused here."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 81)
SUMMARY = "An aggregate's hosts can be asked to cache images; nobody here does."
EDGES: tuple[Edge, ...] = ()
