"""Memberships in aggregates are written at a generation."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import AGGREGATE_LIST
from innkeeper.entrypoints.api.placement.versions.shapes import AGGREGATES, without_in_body
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 19)
SUMMARY = (
    "Aggregates of providers are sent and shown with the generation, which is compared and "
    "moved; before, the body was a bare list."
)


def _wrap(call: Call) -> None:
    call.body = {"aggregates": call.body, "resource_provider_generation": None}


_bare = without_in_body("resource_provider_generation")
EDGES = (
    Edge("GET", AGGREGATES, down=_bare),
    Edge("PUT", AGGREGATES, body_before=AGGREGATE_LIST, up=_wrap, down=_bare),
)
