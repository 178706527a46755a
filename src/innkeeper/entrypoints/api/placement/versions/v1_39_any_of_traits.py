"""Providers are found by one trait out of several, and by several conditions on traits."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.queries import ANY_OF, by_suffix, no_choice
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES, PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 39)
SUMMARY = "`in:` in `required` asks for any of several traits, and `required` can be repeated."


def _keep_last(call: Call) -> None:
    for _, values in by_suffix(call.query, "required"):
        del values[:-1]
        if values[0].startswith(ANY_OF):
            raise no_choice(values[0])


EDGES = (Edge("GET", PROVIDERS, up=_keep_last), Edge("GET", CANDIDATES, up=_keep_last))
