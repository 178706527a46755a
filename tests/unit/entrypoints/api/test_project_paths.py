"""Project ids in paths are removed before routes are matched, and compared with the token."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api import project_paths
from innkeeper.entrypoints.api.volumes.api import VOLUME


def seen(path: str) -> tuple[str, str, str | None]:
    """What the application sees of a path."""
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope)

    scope = {"type": "http", "path": path, "raw_path": path.encode()}
    app = project_paths.without(application, {"/volume": VOLUME})
    asyncio.run(app(scope, None, None))
    (one,) = found
    return one["path"], one["raw_path"].decode(), one.get(project_paths.KEY)


@pytest.mark.parametrize(
    ("path", "left", "project"),
    [
        ("/volume/v3/volumes", "/volume/v3/volumes", None),
        ("/volume/v3/abc/volumes/1", "/volume/v3/volumes/1", "abc"),
        ("/volume/v3/abc", "/volume/v3/", "abc"),
        ("/volume/v3/", "/volume/v3/", None),
        ("/volume/v3", "/volume/v3", None),
        ("/volume/v3/a%20b/types", "/volume/v3/types", "a b"),
        ("/volume/v3//volumes", "/volume/v3//volumes", None),
        ("/compute/v3/abc/volumes", "/compute/v3/abc/volumes", None),
    ],
)
def test_a_project_id_is_removed(path: str, left: str, project: str | None) -> None:
    assert seen(path) == (left, left, project)


def test_another_project_than_the_tokens_is_malformed() -> None:
    mine = RequestContext("req-1", project_id="mine")
    project_paths.check({project_paths.KEY: "mine"}, mine)
    project_paths.check({}, mine)
    project_paths.check({project_paths.KEY: "any"}, RequestContext("req-1"))
    with pytest.raises(Invalid, match="Malformed request url"):
        project_paths.check({project_paths.KEY: "other"}, mine)
