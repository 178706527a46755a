"""Candidates are found by the aggregates of their providers."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 21)
SUMMARY = "`member_of` on allocation candidates: one aggregate, or `in:` and several."
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_17),)
