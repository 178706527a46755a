"""The ASGI application, which serves the APIs, health checks, metrics and the OpenAPI document."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from litestar import HttpMethod, Litestar, MediaType, Request, Response, get, route
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse
from prometheus_client import CONTENT_TYPE_LATEST

from innkeeper.domain.errors import Refusal
from innkeeper.engine import metrics
from innkeeper.entrypoints.api import openapi, origins, project_paths, suffixes
from innkeeper.entrypoints.api.endpoint import RouteEndpoint
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.site import Site, Tracer

PROBES = (HttpMethod.GET, HttpMethod.HEAD)
"""Methods of health checks; some load balancers use HEAD."""
READY_WITHIN_S = 2.0
"""Timeout of the readiness check's ping to the database."""
METHODS = tuple(method for method in HttpMethod if method != HttpMethod.TRACE)
"""The methods that every path accepts, so that the error for a wrong method has the API's own form.
"""


def make(site: Site, apis: Mapping[str, Api], is_ready: Callable[[], str | None]) -> Any:
    """Build the application.

    ``is_ready`` returns ``None``, or the reason why the service is not ready.
    """
    mounts = {name: getattr(site.settings.serving, f"{name}_prefix") for name in apis}
    handlers: list[Any] = []
    endpoints: dict[str, RouteEndpoint] = {}
    by_path: list[tuple[re.Pattern[str], RouteEndpoint]] = []
    for name, api in apis.items():
        for path in dict.fromkeys(each.path for each in api.routes):
            endpoint = RouteEndpoint(site, api, mounts[name], path)
            handlers.append(_handler(mounts[name] + path or "/", endpoint, site.tracing))
            by_path.append((openapi.pattern(mounts[name] + path), endpoint))
        # Answers unknown paths under the prefix, in the API's own form.
        endpoints[name] = RouteEndpoint(site, api, mounts[name], "")
    handlers += [_healthz, _readyz(site, is_ready), _metrics(site), _openapi(apis, mounts)]
    whole = Litestar(
        handlers,
        openapi_config=None,
        exception_handlers={HTTPException: _errors(endpoints, mounts, by_path)},
        request_max_body_size=None,
        logging_config=None,
        on_shutdown=[] if site.neighbours is None else [site.neighbours.tree.parts.client.close],
    )
    suffixed = [pattern for pattern, each in by_path if each.api.takes_json_suffix]
    plain = suffixes.without(whole, suffixed)
    with_projects = project_paths.without(
        plain, {mounts[name]: api for name, api in apis.items() if api.takes_project_in_path}
    )
    return origins.opened(with_projects, site.settings.serving, site.ids)


def _handler(path: str, endpoint: RouteEndpoint, tracing: Tracer | None) -> Any:
    @route(openapi.litestar_path(path), http_method=METHODS, name=f"{endpoint.label}@{path}")
    async def answer(request: Request[Any, Any, Any]) -> ASGIResponse:
        if tracing is None:
            return await endpoint(request)
        with tracing.request(request.method, path, request.headers) as answered:
            response = await endpoint(request)
            answered(response.status_code, response.headers["x-openstack-request-id"])
            return response

    return answer


def _errors(
    endpoints: Mapping[str, RouteEndpoint],
    mounts: Mapping[str, str],
    by_path: Sequence[tuple[re.Pattern[str], RouteEndpoint]],
) -> Callable[[Request[Any, Any, Any], HTTPException], Any]:
    """Return the exception handler for unknown paths and methods.

    If the path is below the prefix of an API, the error has that API's form.
    """

    def answer(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        path = request.scope["path"]
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            for pattern, endpoint in by_path:
                if pattern.fullmatch(path.rstrip("/")):
                    return _Deferred(endpoint)
        best = max(
            (name for name in endpoints if path.startswith(mounts[name])),
            key=lambda name: len(mounts[name]),
            default=None,
        )
        # Litestar itself rejects some malformed hosts with 400.
        if best is None or error.status_code not in (
            HTTPStatus.NOT_FOUND,
            HTTPStatus.METHOD_NOT_ALLOWED,
            HTTPStatus.BAD_REQUEST,
        ):
            return Response({"error": error.detail}, status_code=error.status_code)
        return _Deferred(endpoints[best].answer_unknown)

    return answer


class _Deferred(Response[Any]):
    """A response that authenticates the request before it answers.

    The exception handler cannot authenticate the request, because it is synchronous.
    """

    def __init__(self, answer: Callable[[Any], Awaitable[ASGIResponse]]) -> None:
        super().__init__(None)
        self._answer = answer

    def to_asgi_response(
        self, app: Litestar | None, request: Request[Any, Any, Any], **_: Any
    ) -> Any:
        async def send_answer(scope: Any, receive: Any, send: Any) -> None:
            response = await self._answer(request)
            await response(scope, receive, send)

        return send_answer


@route("/healthz", http_method=PROBES, media_type=MediaType.TEXT, sync_to_thread=False)
def _healthz() -> str:
    """Answer 200 as long as the process runs."""
    return "ok"


def _readyz(site: Site, is_ready: Callable[[], str | None]) -> Any:
    @route("/readyz", http_method=PROBES, media_type=MediaType.TEXT)
    async def readyz() -> Response[str]:
        """Answer 200 if decisions can be made and the database answers, and 503 otherwise."""
        reason = is_ready()
        if reason is None:
            try:
                await asyncio.wait_for(site.engine.ping(), READY_WITHIN_S)
            except Refusal as refusal:
                reason = refusal.message
            except TimeoutError:
                reason = "the database does not answer"
        return Response(reason or "ready", status_code=503 if reason else 200)

    return readyz


def _metrics(site: Site) -> Any:
    @get("/metrics", sync_to_thread=True)
    def give() -> Response[bytes]:
        """Return the metrics of all workers on this port, for Prometheus."""
        text = metrics.exposition(of_workers=site.settings.serving.workers > 1)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return give


def _openapi(apis: Mapping[str, Api], mounts: Mapping[str, str]) -> Any:
    document = openapi.document(apis, mounts)

    @get("/openapi.json", sync_to_thread=False)
    def give() -> dict[str, Any]:
        """Return the OpenAPI document."""
        return document

    return give
