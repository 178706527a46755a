"""Edges that many microversions of server groups have alike."""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.entrypoints.api.microversions import Edge, Schema
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/os-server-groups"
ONE = "/v2.1/os-server-groups/{group_id}"


def wherever_shown(
    down: Callable[[Answer, Call], None],
    body_before: Schema | None = None,
    up: Callable[[Call], None] | None = None,
) -> tuple[Edge, ...]:
    """The same way down for every answer that shows groups; the rest is about making one."""
    return (
        Edge("GET", ALL, down=down),
        Edge("GET", ONE, down=down),
        Edge("POST", ALL, body_before=body_before, up=up, down=down),
    )
