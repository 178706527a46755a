"""Candidates take from several providers of one tree, and tell the whole of it."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 29)
SUMMARY = (
    "Allocation candidates may take from several providers of a tree; their summaries hold "
    "every provider of each tree, with parent and root."
)
ONE_OF_A_TREE = "one of a tree"
"""Term of a call: no candidate takes from two providers of the same tree."""


def _be_flat(call: Call) -> None:
    call.terms.add(ONE_OF_A_TREE)


def _keep_named(answer: Answer, _call: Call) -> None:
    body = answer.body
    requests = body["allocation_requests"]
    # In the order of the summaries, and each of them once.
    named = {uuid for request in requests for uuid in request["allocations"]}
    body["provider_summaries"] = {
        uuid: {"resources": summary["resources"], "traits": summary["traits"]}
        for uuid, summary in body["provider_summaries"].items()
        if uuid in named
    }


EDGES = (Edge("GET", CANDIDATES, up=_be_flat, down=_keep_named),)
