"""The microversions of the Placement API."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import VersionTable
from innkeeper.entrypoints.api.placement.versions import (
    allocations,
    answers,
    candidates,
    providers,
    queries,
)

VERSIONS = VersionTable.of(
    ("placement",),
    Version(1, 0),
    Version(1, 39),
    providers,
    candidates,
    allocations,
    queries,
    answers,
)
