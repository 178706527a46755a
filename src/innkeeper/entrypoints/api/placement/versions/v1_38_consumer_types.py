"""Consumers have types."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import (
    SHOW_USAGES_UNTYPED,
    consumer,
    consumers,
    reshaping,
)
from innkeeper.entrypoints.api.placement.versions.shapes import (
    ALLOCATIONS,
    CONSUMER_ALLOCATIONS,
    RESHAPER,
    USAGES,
    without_in_body,
)
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 38)
SUMMARY = (
    "`consumer_type` is required in writes of allocations and in reshapes, and shown; "
    "`GET /usages` is grouped by it and counts consumers."
)


def _add_up(answer: Answer, _call: Call) -> None:
    sums: dict[str, int] = {}
    for usage in answer.body["usages"].values():
        usage.pop("consumer_count")
        for name, amount in usage.items():
            sums[name] = sums.get(name, 0) + amount
    answer.body["usages"] = sums


_BEFORE = consumer(has_type=False)
EDGES = (
    Edge("PUT", CONSUMER_ALLOCATIONS, body_before=_BEFORE),
    Edge("POST", ALLOCATIONS, body_before=consumers(_BEFORE)),
    Edge("POST", RESHAPER, body_before=reshaping(_BEFORE)),
    Edge("GET", CONSUMER_ALLOCATIONS, down=without_in_body("consumer_type")),
    Edge("GET", USAGES, query_before=SHOW_USAGES_UNTYPED, down=_add_up),
)
