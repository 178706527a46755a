"""Groups of a request for candidates are tied to one part of a tree."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import candidate_schemas
from innkeeper.entrypoints.api.placement.queries import by_suffix, parse_required
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 36)
SUMMARY = (
    "`same_subtree` on allocation candidates: the providers of these groups are below one of "
    "them; groups named there may ask for no amounts."
)


def _refuse_bare_groups(call: Call) -> None:
    query = call.query
    served = {suffix for suffix, _ in by_suffix(query, "resources")}
    traits = [
        f"required{suffix}"
        for suffix, values in by_suffix(query, "required")
        if suffix not in served and parse_required(values[-1:])[0]
    ]
    if traits:
        raise Invalid(
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(traits)}"
        )
    aggregates = [
        f"member_of{suffix}"
        for suffix, _ in by_suffix(query, "member_of")
        if suffix not in served
    ]
    if aggregates:
        raise Invalid(
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(aggregates)}"
        )
    for word in ("required", "in_tree"):
        if any(suffix not in served for suffix, _ in by_suffix(query, word)):
            raise Invalid("All request groups must specify resources.")
    if not served:
        raise Invalid(
            "At least one request group (`resources` or `resources{$S}`) is required."
        )


EDGES = (Edge("GET", CANDIDATES, query_before=candidate_schemas.V1_35, up=_refuse_bare_groups),)
