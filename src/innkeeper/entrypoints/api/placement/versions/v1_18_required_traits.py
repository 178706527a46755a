"""Providers are listed by their traits."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import provider_query
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS

VERSION = Version(1, 18)
SUMMARY = "`required` on the provider list: traits that must be there."
EDGES = (
    Edge(
        "GET",
        PROVIDERS,
        query_before=provider_query("name", "uuid", "member_of", "resources", "in_tree"),
    ),
)
