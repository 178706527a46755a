"""2.33: hypervisors are listed in pages.

Lists until 2.32 are routes of their own, which give all hosts at once and look at no query
parameter.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.hosts.schemas import HYPERVISORS_OPEN
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 33)
SUMMARY = "Hypervisors are listed in pages."
EDGES = (
    Edge("GET", "/v2.1/os-hypervisors", query_before=HYPERVISORS_OPEN),
    Edge("GET", "/v2.1/os-hypervisors/detail", query_before=HYPERVISORS_OPEN),
)
