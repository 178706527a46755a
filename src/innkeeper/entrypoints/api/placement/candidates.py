"""The handler of ``/allocation_candidates``, which lists ways to serve a request.

An answer may contain a thousand candidates, so the handler does not copy their mappings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog

from innkeeper.domain.candidates import FoundCandidates
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.placement.candidate_queries import candidate_query
from innkeeper.entrypoints.api.routing import Answer, Call

LOG = structlog.get_logger("innkeeper.placement")


@dataclass(frozen=True, slots=True)
class CandidateOptions:
    """Options that the microversion sets for searches for candidates.

    If ``takes_one_of_a_tree`` is true, a candidate uses at most one provider of each tree.
    """

    takes_one_of_a_tree: bool = False


def view(found: FoundCandidates) -> dict[str, Any]:
    """Return the JSON value of allocation candidates and the summaries of their providers."""
    return {
        "allocation_requests": [
            {
                "allocations": {
                    uuid: {"resources": amounts} for uuid, amounts in allocations.items()
                },
                "mappings": mappings,
            }
            for allocations, mappings in found.candidates
        ],
        "provider_summaries": {
            uuid: {
                "resources": each.resources,
                "traits": each.traits,
                "parent_provider_uuid": each.parent_uuid,
                "root_provider_uuid": each.root_uuid,
            }
            for uuid, each in found.summaries.items()
        },
    }


async def index(call: Call) -> Answer:
    """List the allocation candidates for a request."""
    is_flat = call.options.of(CandidateOptions).takes_one_of_a_tree
    query = candidate_query(call.query, takes_one_of_a_tree=is_flat)
    found, body = await call.site.engine.find(query, view)
    if found.is_cut:
        LOG.warning(
            "candidates_cut",
            request_id=call.context.request_id,
            max_allocation_candidates=call.site.settings.placing.max_allocation_candidates,
            candidates=len(found.candidates),
        )
    return Answer(body=body, headers=caching.headers(call))
