"""Inventories and what is held of them change in one breath."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 30)
SUMMARY = (
    "`POST /reshaper` replaces what providers have and what consumers hold, all or nothing."
)
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
