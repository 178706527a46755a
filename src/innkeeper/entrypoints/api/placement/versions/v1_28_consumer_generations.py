"""Allocations are written at a generation of their consumer."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import consumer, consumers
from innkeeper.entrypoints.api.placement.versions.shapes import (
    ALLOCATIONS,
    CONSUMER_ALLOCATIONS,
    PROVIDER_ALLOCATIONS,
    without_in_body,
)
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 28)
SUMMARY = (
    "`consumer_generation` is required in writes of allocations, compared, and shown; an empty "
    "`allocations` in a `PUT` lets go of everything."
)
ASKS_NO_GENERATION = "asks no consumer generation"
"""Term of a call: take the consumers at whatever generation they are."""


def _ask_none(call: Call) -> None:
    call.terms.add(ASKS_NO_GENERATION)


def _hide_in_lines(answer: Answer, _call: Call) -> None:
    for line in answer.body["allocations"].values():
        line.pop("consumer_generation", None)


def _before(*, may_be_empty: bool) -> dict[str, object]:
    return consumer(
        may_be_empty=may_be_empty, has_generation=False, has_mappings=False, has_type=False
    )


EDGES = (
    Edge("PUT", CONSUMER_ALLOCATIONS, body_before=_before(may_be_empty=False), up=_ask_none),
    Edge("POST", ALLOCATIONS, body_before=consumers(_before(may_be_empty=True)), up=_ask_none),
    Edge("GET", CONSUMER_ALLOCATIONS, down=without_in_body("consumer_generation")),
    Edge("GET", PROVIDER_ALLOCATIONS, down=_hide_in_lines),
)
