"""Candidates are counted out."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 16)
SUMMARY = "`limit` on allocation candidates: at most so many."
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_10),)
