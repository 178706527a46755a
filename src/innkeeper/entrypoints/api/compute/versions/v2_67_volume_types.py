"""2.67: a boot's new volumes may name their type; older bodies may not."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import with_others
from innkeeper.entrypoints.api.compute.versions import v2_74_named_hosts
from innkeeper.entrypoints.api.compute.versions.server_bodies import DEVICES_UNTYPED
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 67)
SUMMARY = "A boot's block devices may name a volume type."
CREATE_BEFORE = with_others(
    v2_74_named_hosts.CREATE_BEFORE, block_device_mapping_v2=DEVICES_UNTYPED
)
EDGES = wherever_booted(CREATE_BEFORE)
