"""Candidates are found by the root of their tree."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 35)
SUMMARY = "`root_required` on allocation candidates: traits that the root has, or has not."
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_33),)
