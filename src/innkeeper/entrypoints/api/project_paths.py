"""Handles the project id in paths such as ``/v3/{project_id}/volumes`` of Block Storage.

Always true: routes are matched with paths without a project id. If the project id in the path
differs from the project of the caller's token, the request is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from innkeeper.domain.errors import Invalid
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.routing import Api

KEY = "innkeeper.path_project"
"""The key in the ASGI scope for the project id in the path."""


def without(app: Any, apis: Mapping[str, Api]) -> Any:
    """Wrap an application, so that project ids are removed from the paths of ``apis``.

    The keys of ``apis`` are the prefixes of the paths.
    """
    return ProjectRemover(app, apis) if apis else app


def check(scope: Any, context: RequestContext) -> None:
    """Raise :class:`Invalid` if the project id in the path differs from the token's project."""
    project_id = scope.get(KEY)
    if project_id is not None and context.project_id not in (None, project_id):
        raise Invalid("Malformed request url")


class ProjectRemover:
    """An ASGI application that removes project ids from paths, and calls another application."""

    def __init__(self, app: Any, apis: Mapping[str, Api]) -> None:
        self._app = app
        self._roots: dict[str, frozenset[str]] = {}
        for prefix, api in apis.items():
            for route in api.routes:
                parts = route.path.split("/")
                if len(parts) > len(("", "v3")):
                    start = f"{prefix}/{parts[1]}/"
                    self._roots[start] = self._roots.get(start, frozenset()) | {parts[2]}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Remove the project id from the path, and call the inner application."""
        if scope["type"] == "http":
            for start, roots in self._roots.items():
                if scope["path"].startswith(start):
                    scope = _rewritten(scope, start, roots)
                    break
        await self._app(scope, receive, send)


def _rewritten(scope: Any, start: str, roots: frozenset[str]) -> Any:
    raw_start = start.encode()
    first, slash, rest = scope["raw_path"].removeprefix(raw_start).partition(b"/")
    name = unquote(first.decode("latin-1"))
    if not name or name in roots or not scope["raw_path"].startswith(raw_start):
        return scope
    raw_path = raw_start + rest if slash else raw_start
    path = unquote(raw_path.decode("latin-1"))
    return {**scope, "path": path, "raw_path": raw_path, KEY: name}
