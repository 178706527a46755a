"""Helpers of the Compute API for edges. An edge has a microversion's changes to a route."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import edges
from innkeeper.entrypoints.api.microversions import Schema, Step

SERVER = "/v2.1/servers/{server_id}"


def opened(schema: Schema) -> Schema:
    """Return the schema of versions before 2.75, which accepted unknown query parameters."""
    return {**schema, "additionalProperties": True}


def closed_queries(*routes: tuple[str, str]) -> Step:
    """Return the step for 2.75, which changed many routes in the same way."""
    summary = "Unknown query parameters are rejected."
    return Step(Version(2, 75), summary, edges(routes, query_before=opened))
