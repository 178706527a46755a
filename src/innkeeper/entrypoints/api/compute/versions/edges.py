"""Edges and parts of edges that several resources share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import query, with_inner

SERVER = "/v2.1/servers/{server_id}"

Routes = tuple[tuple[str, str], ...]
"""Methods and paths."""
Up = Callable[[Call], None]
Down = Callable[[Answer, Call], None]
Before = Callable[[Schema], Schema]
"""Makes a schema from the one that followed it."""

ANYTHING = query({}, is_closed=False)


def edges(
    routes: Routes,
    *,
    body_before: Before | None = None,
    query_before: Before | Schema | None = None,
    up: Up | None = None,
    down: Down | None = None,
) -> tuple[Edge, ...]:
    """The same edge for each of these routes."""
    return tuple(Edge(method, path, body_before, query_before, up, down) for method, path in routes)


def opened(schema: Schema) -> Schema:
    """The schema from before unknown parameters were rejected."""
    return {**schema, "additionalProperties": True}


def closed_queries(*routes: tuple[str, str]) -> Step:
    """What 2.75 changed about many routes."""
    summary = "Unknown query parameters are rejected."
    return Step(Version(2, 75), summary, edges(routes, query_before=opened))


def parameters_without(*names: str) -> Before:
    """The query's schema from before these parameters existed."""

    def before(schema: Schema) -> Schema:
        known = schema["properties"]
        assert set(names) <= set(known), "only existing parameters can be removed"
        kept = {name: each for name, each in known.items() if name not in names}
        return {**schema, "properties": kept}

    return before


def body_without(wrapper: str, *names: str) -> Before:
    """The body's schema from before these keys under ``wrapper`` existed."""
    return lambda schema: with_inner(schema, wrapper, {}, names)


def body_with(wrapper: str, **others: Schema) -> Before:
    """The body's schema with these keys under ``wrapper`` as they were."""
    return lambda schema: with_inner(schema, wrapper, others)


def ignoring(*names: str) -> Up:
    """A way up that removes query parameters which were ignored then."""

    def up(call: Call) -> None:
        for name in names:
            call.query.pop(name, None)

    return up


def resources(many: str, one: str) -> Callable[[Answer], list[Any]]:
    """A function that finds the resources of an answer, in a list or as a single one."""

    def found(answer: Answer) -> list[Any]:
        body = answer.body
        return list(body[many]) if many in body else [body[one]]

    return found


def dropping(shown: Callable[[Answer], Iterable[dict[str, Any]]], *keys: str) -> Down:
    """A way down that removes keys from the resources that ``shown`` finds in an answer."""

    def down(answer: Answer, call: Call) -> None:
        for each in shown(answer):
            for key in keys:
                each.pop(key, None)

    return down
