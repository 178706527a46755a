"""Providers are found by several conditions on their aggregates at once."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES, PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 24)
SUMMARY = "`member_of` can be repeated; all of them must hold."


def _refuse(call: Call) -> None:
    if len(call.query.get("member_of", ())) > 1:
        raise Invalid("Multiple member_of parameters are not supported")


EDGES = (Edge("GET", PROVIDERS, up=_refuse), Edge("GET", CANDIDATES, up=_refuse))
