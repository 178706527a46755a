"""Providers are listed by the aggregates they are in."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import provider_query
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS

VERSION = Version(1, 3)
SUMMARY = "`member_of` on the provider list: one aggregate, or `in:` and several."
EDGES = (Edge("GET", PROVIDERS, query_before=provider_query("name", "uuid")),)
