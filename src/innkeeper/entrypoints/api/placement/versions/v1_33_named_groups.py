"""Groups of a request for candidates have names."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 33)
SUMMARY = "Groups on allocation candidates have names (`resources_NET`), not only numbers."
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_31),)
