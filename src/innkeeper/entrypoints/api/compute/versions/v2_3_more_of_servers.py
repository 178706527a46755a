"""2.3: administrators see more of a server: hostname, batch, index, user data."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import dropping, wherever_shown
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 3)
SUMMARY = "Servers show their hostname, batch, launch index and user data to administrators."
PREFIX = "OS-EXT-SRV-ATTR:"
ADDED = (
    "hostname",
    "kernel_id",
    "launch_index",
    "ramdisk_id",
    "reservation_id",
    "root_device_name",
    "user_data",
)
EDGES = wherever_shown(dropping(*(PREFIX + name for name in ADDED)))
