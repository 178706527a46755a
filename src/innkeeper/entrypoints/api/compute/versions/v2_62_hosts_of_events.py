"""2.62: the events of an action tell on which host they were."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.history_edges import ACTION, events_without
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 62)
SUMMARY = "Events of an action show hostId, and host to administrators."
EDGES = (Edge("GET", ACTION, down=events_without("hostId", "host")),)
