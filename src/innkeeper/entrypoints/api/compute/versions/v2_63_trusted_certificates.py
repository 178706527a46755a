"""2.63: servers show which certificates their image was trusted by."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.compute.versions import v2_67_volume_types
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    dropping,
    wherever_booted,
    wherever_shown,
)
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 63)
SUMMARY = "Servers show trusted image certificates: here always none."
KEY = "trusted_image_certificates"
CREATE_BEFORE = without(v2_67_volume_types.CREATE_BEFORE, KEY)
EDGES = (*wherever_booted(CREATE_BEFORE), *wherever_shown(dropping(KEY)))
