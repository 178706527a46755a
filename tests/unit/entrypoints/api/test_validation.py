"""Bodies with too many items are rejected at little cost, on every route."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.servers.schemas import CREATE
from innkeeper.entrypoints.api.identity.schemas import LOGIN
from innkeeper.entrypoints.api.microversions import Schema, passage
from innkeeper.entrypoints.api.routing import Api, Route
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.entrypoints.api.validation import Validator

ROUTES = [
    pytest.param(api, route, id=f"{api.name} {route.method} {route.path}")
    for api in APIS.values()
    for route in api.routes
    if route.body is not None
]
MANY = 200_000
WITHIN_S = 0.5
"""Validating so many items takes longer; counting them takes a thousandth of that time."""


def bodies(api: Api, route: Route) -> Iterator[Schema]:
    """The route's body at each version."""
    if api.versions is None:
        assert route.body is not None
        yield route.body
        return
    for version in (api.versions.oldest, *(step.version for step in api.versions.steps)):
        steps = api.versions.after(version)
        body = passage(steps, route.method, route.path, route.body, route.query).body
        assert body is not None
        yield body


def unlimited(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of arrays, and of objects with arbitrary keys, without a limit."""
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if ("array" in kinds or "items" in schema) and "maxItems" not in schema:
        yield f"{path} is an array"
    is_open = schema.get("additionalProperties", True) is not False
    is_keyed = "patternProperties" in schema
    is_object = "object" in kinds or "properties" in schema or is_keyed
    if is_object and (is_open or is_keyed) and "maxProperties" not in schema:
        yield f"{path} is an open object"
    for keyword in ("properties", "patternProperties"):
        for name, inner in schema.get(keyword, {}).items():
            yield from unlimited(inner, f"{path}/{name}")
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield from unlimited(schema[keyword], f"{path}/{keyword}")
    for keyword in ("allOf", "anyOf", "oneOf"):
        for place, inner in enumerate(schema.get(keyword, ())):
            yield from unlimited(inner, f"{path}/{keyword}/{place}")


@pytest.mark.parametrize(("api", "route"), ROUTES)
def test_every_list_and_mapping_has_a_limit(api: Api, route: Route) -> None:
    found = {complaint for body in bodies(api, route) for complaint in unlimited(body)}
    assert found == set()


def test_an_array_without_a_limit_is_found() -> None:
    inner = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"a": {"oneOf": [inner]}}}
    assert len(list(unlimited(schema))) == 2


def server(**more: Any) -> dict[str, Any]:
    return {"server": {"name": "a", "flavorRef": "1", **more}}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        pytest.param(
            LOGIN, {"auth": {"identity": {"methods": ["a"] * MANY}}}, id="methods of logging in"
        ),
        pytest.param(
            LOGIN,
            {"auth": {"identity": {"methods": ["a"], **{str(n): {} for n in range(MANY)}}}},
            id="data of methods",
        ),
        pytest.param(CREATE, server(networks=[{}] * MANY), id="networks, one of two kinds"),
        pytest.param(CREATE, server(block_device_mapping_v2=[{}] * MANY), id="devices"),
        pytest.param(CREATE, server(tags=["a"] * MANY), id="tags"),
        pytest.param(CREATE, server(metadata={str(n): "a" for n in range(MANY)}), id="metadata"),
        pytest.param(
            CREATE, server(trusted_image_certificates=[{}] * MANY), id="things to tell apart"
        ),
        pytest.param(
            CREATE,
            {**server(), "os:scheduler_hints": {"different_cell": ["a"] * MANY}},
            id="cells in hints",
        ),
    ],
)
def test_too_many_items_are_rejected_unvisited(schema: Schema, body: Any) -> None:
    validator = Validator(schema, lambda error: str(error.message)[-80:])
    started_s = time.process_time()
    with pytest.raises(Invalid):
        validator.check(body)
    assert time.process_time() - started_s < WITHIN_S


def test_items_within_the_limit_are_validated() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    validator = Validator(schema, lambda error: str(error.message))
    validator.check(["a", "b"])
    with pytest.raises(Invalid, match="7 is not of type 'string'"):
        validator.check(["a", 7])
    with pytest.raises(Invalid, match="is too long"):
        validator.check(["a", "b", 7])
