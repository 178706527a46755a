"""Candidates are found by traits, and the traits of their providers are shown."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 17)
SUMMARY = "`required` on allocation candidates; the summaries of providers show `traits`."


def _hide_traits(answer: Answer, _call: Call) -> None:
    for summary in answer.body["provider_summaries"].values():
        del summary["traits"]


EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_16, down=_hide_traits),)
