"""The suffix .json is removed from the paths of routes, and from no other path."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from innkeeper.entrypoints.api import openapi, suffixes

PATHS = [openapi.pattern(path) for path in ("/r/v1/leases", "/r/v1/leases/{lease_id}")]


def seen(scope: dict[str, Any]) -> dict[str, Any]:
    """What the application sees of a request."""
    scopes: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        scopes.append(scope)

    asyncio.run(suffixes.without(app, PATHS)(scope, None, None))
    (found,) = scopes
    return found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/r/v1/leases.json", "/r/v1/leases"),
        ("/r/v1/leases/5.json", "/r/v1/leases/5"),
        ("/r/v1/leases/5.json.json", "/r/v1/leases/5.json"),
        ("/r/v1/leases", "/r/v1/leases"),
        ("/r/v1/leases/", "/r/v1/leases/"),
        ("/r/v1/leases/.json", "/r/v1/leases/.json"),
        ("/openapi.json", "/openapi.json"),
        ("/p/v1/leases.json", "/p/v1/leases.json"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    given = {"type": "http", "path": path, "raw_path": path.encode(), "method": "GET"}
    assert seen(given) == {**given, "path": expected, "raw_path": expected.encode()}


def test_other_scopes_pass() -> None:
    assert seen({"type": "lifespan"}) == {"type": "lifespan"}


def test_without_such_paths_nothing_is_wrapped() -> None:
    app = object()
    assert suffixes.without(app, []) is app
