"""Candidates are asked for in groups, each of which one provider serves."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES

VERSION = Version(1, 25)
SUMMARY = (
    "Numbered groups on allocation candidates (`resources1`, `required1`, `member_of1`), each "
    "served by one provider; `group_policy` says whether two may be served by the same."
)
EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_21),)
