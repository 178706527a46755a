"""Candidates are found in one tree."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 31)
SUMMARY = "`in_tree` on allocation candidates: only providers of the tree of this one."
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_25),)
