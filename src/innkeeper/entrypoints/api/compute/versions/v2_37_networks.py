"""2.37: a boot may ask for networks by the words ``auto`` and ``none``."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import with_others
from innkeeper.entrypoints.api.compute.versions import v2_42_device_tags_again
from innkeeper.entrypoints.api.compute.versions.server_bodies import NICS
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 37)
SUMMARY = "A boot may ask for networks by the words auto and none."
CREATE_BEFORE = with_others(v2_42_device_tags_again.CREATE_BEFORE, networks=NICS)
EDGES = wherever_booted(CREATE_BEFORE)
