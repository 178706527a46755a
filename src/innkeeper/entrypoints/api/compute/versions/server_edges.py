"""Edges that many microversions of servers have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from innkeeper.entrypoints.api.compute.servers.schemas import without
from innkeeper.entrypoints.api.microversions import Edge, Schema
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/servers"
DETAIL = "/v2.1/servers/detail"
ONE = "/v2.1/servers/{server_id}"
EXPLAIN = "/v2.1/os-explain"
SELECT = "/v2.1/zones/select"

Down = Callable[[Answer, Call], None]
Up = Callable[[Call], None]


def servers_in(answer: Answer) -> list[dict[str, Any]]:
    """The servers in an answer that shows one or many."""
    body = answer.body
    return body["servers"] if "servers" in body else [body["server"]]


def dropping(*keys: str) -> Down:
    """A way down that takes these keys from every server."""

    def drop(answer: Answer, call: Call) -> None:
        for server in servers_in(answer):
            for key in keys:
                server.pop(key, None)

    return drop


def wherever_shown(down: Down) -> tuple[Edge, ...]:
    """The same way down for every answer that shows servers with all they have."""
    return (
        Edge("GET", DETAIL, down=down),
        Edge("GET", ONE, down=down),
        Edge("PUT", ONE, down=down),
    )


def wherever_booted(body_before: Schema, up: Up | None = None) -> tuple[Edge, ...]:
    """The same older body for booting and for asking where a boot would go.

    An entry of a build plan is none of Nova's words, so it may be in a boot at all versions.
    """
    planned_before = without(body_before, "blob")
    return (
        Edge("POST", ALL, body_before=body_before, up=up),
        Edge("POST", EXPLAIN, body_before=planned_before, up=up),
        Edge("POST", SELECT, body_before=planned_before, up=up),
    )


def wherever_listed(up: Up) -> tuple[Edge, ...]:
    """The same way up for both listings."""
    return (Edge("GET", ALL, up=up), Edge("GET", DETAIL, up=up))


def passing_over(names: Iterable[str]) -> Up:
    """A way up that takes filters away which a listing did not know then."""
    unknown = tuple(names)

    def forget(call: Call) -> None:
        for name in unknown:
            call.query.pop(name, None)

    return forget
