"""2.74: administrators can name a boot's host without a zone."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.compute.versions import v2_90_hostnames
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 74)
SUMMARY = "A boot may name host and hypervisor_hostname."
CREATE_BEFORE = without(v2_90_hostnames.CREATE_BEFORE, "host", "hypervisor_hostname")
EDGES = wherever_booted(CREATE_BEFORE)
