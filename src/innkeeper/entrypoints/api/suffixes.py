"""Removes the suffix ``.json``, which clients of some APIs append to paths.

Always true: the suffix is removed if a route has the path without the suffix. All other paths reach
the routes unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

SUFFIX = ".json"


def without(app: Any, paths: Sequence[re.Pattern[str]]) -> Any:
    """Wrap an application, so that the suffix is removed from paths that match one of ``paths``."""
    return SuffixRemover(app, paths) if paths else app


class SuffixRemover:
    """An ASGI application that removes the suffix from paths, and calls another application."""

    def __init__(self, app: Any, paths: Sequence[re.Pattern[str]]) -> None:
        self._app = app
        self._paths = tuple(paths)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Remove the suffix from the path, and call the inner application."""
        if scope["type"] == "http" and scope["path"].endswith(SUFFIX):
            path = scope["path"].removesuffix(SUFFIX)
            if any(each.fullmatch(path) for each in self._paths):
                raw_path = scope["raw_path"].removesuffix(SUFFIX.encode())
                scope = {**scope, "path": path, "raw_path": raw_path}
        await self._app(scope, receive, send)
