"""Requests and responses of the ASGI application, and the table of its paths.

Always true: header names are in lower case. If a header is repeated, the first value counts. The
table of paths ignores a slash at the end of a path, and treats a double slash as one slash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from innkeeper.entrypoints.api.connections import ARRIVING
from innkeeper.entrypoints.api.content_types import JSON
from innkeeper.entrypoints.api.whole_answers import send_whole

BODILESS = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
"""Statuses whose answers have no body and no headers about a body."""


class AsgiRequest:
    """One HTTP request. ``params`` has the values of the path's parameters, by name.

    ``receive`` returns the events of the body. The ASGI specification, version 3, defines these
    events.
    """

    __slots__ = ("headers", "method", "params", "receive", "scope")

    def __init__(self, scope: Any, receive: Any, params: Mapping[str, str]) -> None:
        self.scope = scope
        self.receive = receive
        self.params = params
        self.method: str = scope["method"]
        # If a header is repeated, the first one is added last, so that its value overwrites the
        # others.
        self.headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }

    @property
    def client(self) -> str:
        """The network address of the client, as reported by trusted proxies."""
        client = self.scope.get("client")
        return client[0] if client else ""


class AsgiResponse:
    """One HTTP response.

    ``body`` is ``None`` if the answer has neither a body nor headers about a body.

    Raises :class:`UnicodeError` if a header contains a character that HTTP cannot carry.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(
        self, status: int, body: bytes | None, headers: Mapping[str, str], media_type: str = JSON
    ) -> None:
        self.status = status
        self.body = b"" if body is None or status in BODILESS else body
        self.headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        if body is not None and status not in BODILESS:
            if media_type.startswith("text/") and "charset" not in media_type:
                media_type += "; charset=utf-8"
            self.headers.append((b"content-type", media_type.encode("latin-1")))
            self.headers.append((b"content-length", b"%d" % len(body)))

    async def send_with(self, send: Any) -> None:
        """Send this response."""
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


Handler = Callable[[AsgiRequest], Awaitable[AsgiResponse]]


@dataclass(slots=True)
class _Node:
    """A node of the tree of paths.

    It stands for the first segments of a path. Its children stand for the possible next segments.
    """

    by_name: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    handler: Handler | None = None
    names: tuple[str, ...] = ()


class PathTable:
    """Finds the handler of a path, in a time that depends only on the length of the path."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, template: str, handler: Handler) -> None:
        """Add a handler. The template has parameters in braces, such as ``/servers/{id}``."""
        node, names = self._root, []
        for part in filter(None, template.split("/")):
            if part.startswith("{"):
                names.append(part[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.by_name.setdefault(part, _Node())
        assert node.handler is None, f"one handler for {template}"
        node.handler, node.names = handler, tuple(names)

    def find(self, path: str) -> tuple[Handler, Mapping[str, str]] | None:
        """Return the handler of a path, and the values of its parameters.

        Returns ``None`` if no template matches the path.

        A fixed segment of a template takes precedence over a parameter in the same position.
        """
        node, values = self._root, []
        for part in path.split("/"):
            if not part:
                continue
            next_node = node.by_name.get(part)
            if next_node is None:
                next_node = node.parameter
                if next_node is None:
                    return None
                values.append(part)
            node = next_node
        if node.handler is None:
            return None
        return node.handler, dict(zip(node.names, values, strict=True)) if values else {}


class Application:
    """The ASGI application, which passes each request to the handler of the request's path.

    ``unknown`` answers requests for paths without a handler. ``on_startup`` is called before the
    server accepts its first request, and ``on_shutdown`` after the server's last request.
    """

    def __init__(
        self,
        paths: PathTable,
        unknown: Handler,
        on_startup: Callable[[], Awaitable[None]],
        on_shutdown: Callable[[], Awaitable[None]],
    ) -> None:
        self._paths = paths
        self._unknown = unknown
        self._on_startup = on_startup
        self._on_shutdown = on_shutdown

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        kind = scope["type"]
        if kind == "http":
            found = self._paths.find(scope["path"])
            handler, params = found or (self._unknown, {})
            response = await handler(AsgiRequest(scope, receive, params))
            # Break the reference cycle between this object and the scope. Otherwise, only the
            # garbage collector could free both.
            cycle = scope.pop(ARRIVING, None)
            # If another layer has wrapped ``send``, this layer must see the answer.
            is_direct = cycle is not None and getattr(send, "__self__", None) is cycle
            if not is_direct or not send_whole(
                cycle, response.status, response.headers, response.body
            ):
                await response.send_with(send)
        elif kind == "lifespan":
            await self._live(receive, send)
        else:
            # No path supports WebSocket.
            await send({"type": "websocket.close"})

    async def _live(self, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await self._on_startup()
            await send({"type": "lifespan.startup.complete"})
        await self._on_shutdown()
        await send({"type": "lifespan.shutdown.complete"})
