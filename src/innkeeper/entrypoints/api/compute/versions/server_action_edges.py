"""Edges of actions, which share one route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.servers.schemas import TRUE_WORDS
from innkeeper.entrypoints.api.compute.versions.server_edges import ONE
from innkeeper.entrypoints.api.microversions import Edge, Schema
from innkeeper.entrypoints.api.routing import Answer, Call

ACTION = f"{ONE}/action"


def acted(
    body_before: Schema | None = None,
    up: Callable[[Call], None] | None = None,
    down: Callable[[Answer, Call], None] | None = None,
) -> Edge:
    """What one microversion changed about actions."""
    return Edge("POST", ACTION, body_before=body_before, up=up, down=down)


def pop_force(wanted: dict[str, Any]) -> bool:
    """Take ``force`` out of what is wanted; only a host that is named can be forced."""
    is_forced = wanted.pop("force", False) in TRUE_WORDS
    if is_forced and not wanted.get("host"):
        raise Invalid("Can't force to a non-provided destination")
    return is_forced
