"""Providers can be put into aggregates."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.placement.versions.shapes import without_link

VERSION = Version(1, 1)
SUMMARY = "Providers can be put into aggregates, and link to them."
EDGES = without_link("aggregates")
