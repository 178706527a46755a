"""These functions make edges for all APIs. An edge is a microversion's change to a route."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from innkeeper.entrypoints.api.microversions import Edge, Schema
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import query, with_inner

Routes = tuple[tuple[str, str], ...]
"""Pairs of an HTTP method and a route's path."""
Up = Callable[[Call], None]
Down = Callable[[Answer, Call], None]
Before = Callable[[Schema], Schema]
"""A function that converts the schema of a version to the schema of the version before it."""

ANYTHING = query({}, is_closed=False)


def edges(
    routes: Routes,
    *,
    body_before: Before | None = None,
    query_before: Before | Schema | None = None,
    up: Up | None = None,
    down: Down | None = None,
) -> tuple[Edge, ...]:
    """Return an edge with these changes for each of the routes."""
    return tuple(Edge(method, path, body_before, query_before, up, down) for method, path in routes)


def parameters_without(*names: str) -> Before:
    """Return a function that removes these parameters from the schema of a query."""

    def before(schema: Schema) -> Schema:
        known = schema["properties"]
        assert set(names) <= set(known), "only existing parameters can be removed"
        kept = {name: each for name, each in known.items() if name not in names}
        return {**schema, "properties": kept}

    return before


def body_without(wrapper: str, *names: str) -> Before:
    """Return a function that removes keys of the object ``wrapper`` from a body's schema."""
    return lambda schema: with_inner(schema, wrapper, {}, names)


def body_with(wrapper: str, **others: Schema) -> Before:
    """Return a function that adds or replaces keys of the object ``wrapper`` in a body's schema."""
    return lambda schema: with_inner(schema, wrapper, others)


def ignoring(*names: str) -> Up:
    """Return an upgrade that removes query parameters, which older versions ignored."""

    def up(call: Call) -> None:
        for name in names:
            call.query.pop(name, None)

    return up


def resources(many: str, one: str) -> Callable[[Answer], list[Any]]:
    """Return a function that returns the list of resources in an answer.

    A body has either a list with the key ``many``, or a single resource with the key ``one``.
    """

    def found(answer: Answer) -> list[Any]:
        body = answer.body
        return list(body[many]) if many in body else [body[one]]

    return found


def whole(answer: Answer) -> list[Any]:
    """Return a list of one resource, which is the whole body of the answer."""
    return [answer.body]


def dropping(shown: Callable[[Answer], Iterable[dict[str, Any]]], *keys: str) -> Down:
    """Return a downgrade that removes keys from the resources that ``shown`` finds."""

    def down(answer: Answer, call: Call) -> None:
        for each in shown(answer):
            for key in keys:
                each.pop(key, None)

    return down
