"""Providers are listed by the room they have."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import provider_query
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS

VERSION = Version(1, 4)
SUMMARY = "`resources` on the provider list: amounts that must fit."
EDGES = (Edge("GET", PROVIDERS, query_before=provider_query("name", "uuid", "member_of")),)
