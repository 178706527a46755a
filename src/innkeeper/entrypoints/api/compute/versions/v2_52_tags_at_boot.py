"""2.52: tags can be given at boot."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.compute.versions import v2_57_no_personality
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 52)
SUMMARY = "Tags can be given at boot."
CREATE_BEFORE = without(v2_57_no_personality.CREATE_BEFORE, "tags")
EDGES = wherever_booted(CREATE_BEFORE)
