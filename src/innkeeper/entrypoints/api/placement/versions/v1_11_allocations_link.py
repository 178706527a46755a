"""Providers link to what is held of them."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.placement.versions.shapes import without_link

VERSION = Version(1, 11)
SUMMARY = "Providers link to their allocations."
EDGES = without_link("allocations")
