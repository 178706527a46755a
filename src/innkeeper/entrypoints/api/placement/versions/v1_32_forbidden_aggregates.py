"""Providers are found by aggregates that they are not in."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.queries import by_suffix, parse_member_of
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES, PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 32)
SUMMARY = "`!` before an aggregate, or before `in:`, in `member_of` forbids it."


def _refuse(call: Call) -> None:
    for suffix, values in by_suffix(call.query, "member_of"):
        # Read first: what is malformed is told as such at every version.
        _, forbidden = parse_member_of(values)
        if forbidden:
            raise Invalid(
                f"Forbidden member_of{suffix} parameters are not supported in the specified "
                "microversion"
            )


EDGES = (Edge("GET", PROVIDERS, up=_refuse), Edge("GET", CANDIDATES, up=_refuse))
