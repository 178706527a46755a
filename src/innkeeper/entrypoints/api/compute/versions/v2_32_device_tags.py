"""2.32: devices and networks of a boot may be tagged."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import with_others
from innkeeper.entrypoints.api.compute.versions import v2_37_networks
from innkeeper.entrypoints.api.compute.versions.server_bodies import DEVICES_PLAIN, NICS_PLAIN
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 32)
SUMMARY = "Devices and networks of a boot may be tagged."
CREATE_BEFORE = with_others(
    v2_37_networks.CREATE_BEFORE,
    block_device_mapping_v2=DEVICES_PLAIN,
    networks=NICS_PLAIN,
)
EDGES = wherever_booted(CREATE_BEFORE)
