"""A client that calls an ASGI application in this process, from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

import httpx


class AsgiClient:
    """Calls an application on an event loop of its own, within a ``with`` block."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def request(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """Return the answer to a request. ``parts`` are those of httpx."""
        asked = asyncio.run_coroutine_threadsafe(self._request(method, path, parts), self._loop)
        return asked.result()

    def post(self, path: str, **parts: Any) -> httpx.Response:
        """Return the answer to a POST."""
        return self.request("POST", path, **parts)

    async def _request(self, method: str, path: str, parts: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.request(method, path, **parts)
