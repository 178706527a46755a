"""2.19: servers have a description."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.compute.versions import v2_32_device_tags
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    ONE,
    dropping,
    wherever_booted,
    wherever_shown,
)
from innkeeper.entrypoints.api.compute.versions.v2_90_hostnames import UPDATE_BEFORE
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 19)
SUMMARY = "Servers have a description, given at boot or later."
CREATE_BEFORE = without(v2_32_device_tags.CREATE_BEFORE, "description")
EDGES = (
    *wherever_booted(CREATE_BEFORE),
    *wherever_shown(dropping("description")),
    Edge("PUT", ONE, body_before=without(UPDATE_BEFORE, "description")),
)
