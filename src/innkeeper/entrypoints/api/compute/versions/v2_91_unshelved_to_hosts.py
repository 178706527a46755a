"""2.91: a server can be unshelved to a given host, and out of its availability zone."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_91
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 91)
SUMMARY = "A server can be unshelved to a given host, or unpinned from its zone."
EDGES = (acted(body_before=BEFORE_2_91),)
