"""Support for cross-origin requests (CORS) from consoles that run in a browser.

Always true: ``OPTIONS`` gets a 200 without a token, and never reaches a route.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.ids import IdSource
from innkeeper.domain.slices import Serving

ANY_ORIGIN = "*"
SIMPLE_HEADERS = (
    "Accept",
    "Accept-Language",
    "Cache-Control",
    "Content-Language",
    "Content-Type",
    "Expires",
    "Last-Modified",
    "Pragma",
    # The older name of X-Project-Id, which older consoles still send.
    "X-Tenant-Id",
)
"""Headers that pages may always send."""

Headers = dict[str, str]


def opened(app: Any, serving: Serving, ids: IdSource) -> Any:
    """Wrap an application to support CORS, if the settings allow at least one origin."""
    return Origins(app, serving, ids) if serving.cors_allowed_origins else app


class Origins:
    """An ASGI application that adds CORS to another application."""

    def __init__(self, app: Any, serving: Serving, ids: IdSource) -> None:
        self._app = app
        self._origins = frozenset(serving.cors_allowed_origins)
        self._ids = ids
        self._methods = frozenset(serving.cors_allow_methods)
        names = (*serving.cors_allow_headers, *SIMPLE_HEADERS)
        self._headers = frozenset(name.lower() for name in names)
        self._max_age_s = serving.cors_max_age_s
        self._expose = ",".join(serving.cors_expose_headers)
        self._credentials = (
            {"access-control-allow-credentials": "true"} if serving.cors_allow_credentials else {}
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer ``OPTIONS``, and pass any other request to the inner application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        origin = self._allowed(headers.get("origin"))
        if scope["method"] == "OPTIONS":
            await _answer(send, self._preflight(origin, headers), self._ids.uuid())
        elif origin is None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _adding(send, self._simple(origin)))

    def _allowed(self, origin: str | None) -> str | None:
        if origin is None or origin in self._origins:
            return origin
        return ANY_ORIGIN if ANY_ORIGIN in self._origins else None

    def _preflight(self, origin: str | None, request: Headers) -> Headers:
        method = request.get("access-control-request-method")
        text = request.get("access-control-request-headers", "")
        names = [name.strip() for name in text.split(",") if name.strip()]
        is_allowed = method in self._methods and all(
            name.lower() in self._headers for name in names
        )
        if origin is None or method is None or not is_allowed:
            return {}
        answer = {
            "vary": "Origin",
            "access-control-allow-origin": origin,
            **self._credentials,
            "access-control-allow-methods": method,
        }
        if self._max_age_s:
            answer["access-control-max-age"] = str(self._max_age_s)
        if names:
            answer["access-control-allow-headers"] = ",".join(names)
        return answer

    def _simple(self, origin: str) -> Headers:
        answer = {"access-control-allow-origin": origin, **self._credentials}
        if self._expose:
            answer["access-control-expose-headers"] = self._expose
        return answer


async def _answer(send: Any, headers: Headers, request_id: str) -> None:
    whole = {**headers, "content-length": "0", "x-openstack-request-id": f"req-{request_id}"}
    await send({"type": "http.response.start", "status": 200, "headers": _raw(whole)})
    await send({"type": "http.response.body", "body": b""})


def _raw(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def _adding(send: Any, headers: Headers) -> Any:
    """Return a ``send`` function that adds these headers to the answer.

    It also adds ``Origin`` to the header ``Vary``.
    """

    async def send_more(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message["headers"] if pair[0].lower() != b"vary"]
            varies = [value for name, value in message["headers"] if name.lower() == b"vary"]
            kept.append((b"vary", b",".join((*varies, b"Origin"))))
            message = {**message, "headers": kept + _raw(headers)}
        await send(message)

    return send_more
