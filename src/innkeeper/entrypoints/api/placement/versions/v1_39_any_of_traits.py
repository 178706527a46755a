"""Providers are listed by one trait out of several, and by several conditions on traits."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 39)
SUMMARY = "`in:` in `required` asks for any of several traits, and `required` can be repeated."


def _keep_last(call: Call) -> None:
    value = call.last("required")
    if value is None:
        return
    if value.startswith("in:"):
        # The prefix was a part of the first name, which no trait has.
        raise Invalid(f"No such trait(s): {value.partition(',')[0]}.")
    call.query["required"] = [value]


EDGES = (Edge("GET", PROVIDERS, up=_keep_last),)
