"""Providers are listed by aggregates that they are not in."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 32)
SUMMARY = "`!` before an aggregate, or before `in:`, in `member_of` forbids it."


def _refuse(call: Call) -> None:
    if any(value.startswith("!") for value in call.query.get("member_of", ())):
        raise Invalid(
            "Forbidden member_of parameters are not supported in the specified microversion"
        )


EDGES = (Edge("GET", PROVIDERS, up=_refuse),)
