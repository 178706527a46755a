"""Pieces of edges that several resources have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import query, with_inner

SERVER = "/v2.1/servers/{server_id}"

Up = Callable[[Call], None]
Down = Callable[[Answer, Call], None]
Before = Callable[[Schema], Schema]
"""Makes a schema of the one that followed it."""

CLOSED_QUERIES = "Unknown query parameters are refused."
"""What 2.75 did to many lists."""
ANYTHING = query({}, is_closed=False)


def opened(schema: Schema) -> Schema:
    """The schema from before unknown parameters were refused."""
    return {**schema, "additionalProperties": True}


def parameters_without(*names: str) -> Before:
    """The query's schema from before these parameters were there."""

    def before(schema: Schema) -> Schema:
        known = schema["properties"]
        assert set(names) <= set(known), "only what is there can go"
        left = {name: each for name, each in known.items() if name not in names}
        return {**schema, "properties": left}

    return before


def body_without(wrapper: str, *names: str) -> Before:
    """The body's schema from before these keys under ``wrapper`` were there."""
    return lambda schema: with_inner(schema, wrapper, {}, names)


def body_with(wrapper: str, **others: Schema) -> Before:
    """The body's schema with these keys under ``wrapper`` as they were."""
    return lambda schema: with_inner(schema, wrapper, others)


def ignoring(*names: str) -> Up:
    """A way up that takes query parameters away which were not looked at then."""

    def up(call: Call) -> None:
        for name in names:
            call.query.pop(name, None)

    return up


def dropping(shown: Callable[[Answer], Iterable[dict[str, Any]]], *keys: str) -> Down:
    """A way down that takes keys from whatever ``shown`` finds in an answer."""

    def down(answer: Answer, call: Call) -> None:
        for each in shown(answer):
            for key in keys:
                each.pop(key, None)

    return down
