"""Traits, and which providers have them."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.placement.versions.shapes import without_link

VERSION = Version(1, 6)
SUMMARY = (
    "Traits can be listed, created and deleted, and given to providers, which link to them."
)
EDGES = without_link("traits")
