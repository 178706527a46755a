"""What came out of a search for candidates can be sent back as it is."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import consumer, consumers
from innkeeper.entrypoints.api.placement.versions.shapes import (
    ALLOCATIONS,
    CONSUMER_ALLOCATIONS,
)

VERSION = Version(1, 34)
SUMMARY = "`mappings` is accepted, and ignored, in writes of allocations."
_BEFORE = consumer(has_mappings=False, has_type=False)
EDGES = (
    Edge("PUT", CONSUMER_ALLOCATIONS, body_before=_BEFORE),
    Edge("POST", ALLOCATIONS, body_before=consumers(_BEFORE)),
)
