"""2.84: the events of an action tell what went wrong."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.history_edges import ACTION, events_without
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 84)
SUMMARY = "Events of an action show details to administrators."
EDGES = (Edge("GET", ACTION, down=events_without("details")),)
