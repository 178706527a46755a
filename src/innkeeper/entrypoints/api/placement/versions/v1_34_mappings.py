"""What came out of a search for candidates can be sent back as it is."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import consumer, consumers, reshaping
from innkeeper.entrypoints.api.placement.versions.shapes import (
    ALLOCATIONS,
    CANDIDATES,
    CONSUMER_ALLOCATIONS,
    RESHAPER,
)
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 34)
SUMMARY = (
    "`mappings` tells which providers serve which group of an allocation candidate; it is "
    "accepted, and ignored, in writes of allocations and in reshapes."
)


def _unmap(answer: Answer, _call: Call) -> None:
    for request in answer.body["allocation_requests"]:
        del request["mappings"]


_BEFORE = consumer(has_mappings=False, has_type=False)
EDGES = (
    Edge("PUT", CONSUMER_ALLOCATIONS, body_before=_BEFORE),
    Edge("POST", ALLOCATIONS, body_before=consumers(_BEFORE)),
    Edge("POST", RESHAPER, body_before=reshaping(_BEFORE)),
    Edge("GET", CANDIDATES, down=_unmap),
)
