"""2.75: unknown query parameters are refused, and no swap is the number 0.

Several resources changed at once; each brings its edges from a module of its own.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions import (
    edges_2_75_grouping,
    edges_2_75_hosts,
    edges_2_75_servers,
)
from innkeeper.entrypoints.api.microversions import Version

VERSION = Version(2, 75)
SUMMARY = "Unknown query parameters are refused."
EDGES = (
    *edges_2_75_grouping.EDGES,
    *edges_2_75_hosts.EDGES,
    *edges_2_75_servers.EDGES,
)
