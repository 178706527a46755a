"""2.42: networks of a boot may be tagged again, which 2.37 had forgotten."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import with_others
from innkeeper.entrypoints.api.compute.versions import v2_52_tags_at_boot
from innkeeper.entrypoints.api.compute.versions.server_bodies import NETWORKS_PLAIN
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 42)
SUMMARY = "Networks of a boot may be tagged again."
CREATE_BEFORE = with_others(v2_52_tags_at_boot.CREATE_BEFORE, networks=NETWORKS_PLAIN)
EDGES = wherever_booted(CREATE_BEFORE)
