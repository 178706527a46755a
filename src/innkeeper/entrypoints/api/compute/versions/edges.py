"""Functions that make edges of the Compute API. An edge is a microversion's change to a route."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import edges
from innkeeper.entrypoints.api.microversions import Schema, Step

SERVER = "/v2.1/servers/{server_id}"


def opened(schema: Schema) -> Schema:
    """Return a query schema for versions before 2.75, which accept unknown parameters."""
    return {**schema, "additionalProperties": True}


def closed_queries(*routes: tuple[str, str]) -> Step:
    """Return the changes of 2.75, which rejects unknown query parameters on these routes."""
    summary = "Unknown query parameters are rejected."
    return Step(Version(2, 75), summary, edges(routes, query_before=opened))
