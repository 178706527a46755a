"""Providers can be moved from one parent to another, or to none."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDER
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 37)
SUMMARY = (
    "A provider's parent can be changed and taken away; before, it could only be set once."
)
ONLY_ROOTS_MOVE = "only roots move"
"""Term of a call: who has a parent keeps it."""


def _hold_fast(call: Call) -> None:
    call.terms.add(ONLY_ROOTS_MOVE)


EDGES = (Edge("PUT", PROVIDER, up=_hold_fast),)
