"""The ASGI application, which serves the APIs, health checks, metrics and the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from innkeeper.domain.errors import Refusal
from innkeeper.engine import metrics
from innkeeper.entrypoints.api import openapi, origins, project_paths, suffixes
from innkeeper.entrypoints.api.asgi import (
    Application,
    AsgiRequest,
    AsgiResponse,
    Handler,
    PathTable,
)
from innkeeper.entrypoints.api.endpoint import RouteEndpoint
from innkeeper.entrypoints.api.leader_calls import KIND, Answerer, handler_of
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.site import Site, Tracer

PROBES = ("GET", "HEAD")
"""The methods of health checks. Some load balancers use HEAD."""
READY_WITHIN_S = 2.0
"""Timeout of the readiness check's ping to the database."""
TEXT = "text/plain"


def make(site: Site, apis: Mapping[str, Api], is_ready: Callable[[], str | None]) -> Any:
    """Build the application.

    ``is_ready`` returns ``None``, or the reason why the service is not ready.
    """
    mounts = {name: getattr(site.settings.serving, f"{name}_prefix") for name in apis}
    paths = PathTable()
    suffixed = []
    answerers: dict[tuple[str, str], Answerer] = {}
    for name, api in apis.items():
        for path in dict.fromkeys(each.path for each in api.routes):
            template = mounts[name] + path
            endpoint = RouteEndpoint(site, api, mounts[name], path)
            answerers[name, path] = endpoint.answer_forwarded
            paths.add(template, _traced(endpoint, template or "/", site.tracing))
            if api.takes_json_suffix:
                suffixed.append(openapi.pattern(template))
    _add_others(paths, site, is_ready, openapi.document(apis, mounts))
    if site.leadership is not None:
        site.leadership.handlers[KIND] = handler_of(answerers)
    unknown = _unknown(site, apis, mounts)
    whole = Application(paths, unknown, lambda: _open(site), lambda: _close(site))
    plain = suffixes.without(whole, suffixed)
    with_projects = project_paths.without(
        plain, {mounts[name]: api for name, api in apis.items() if api.takes_project_in_path}
    )
    return origins.opened(with_projects, site.settings.serving, site.ids)


async def _open(site: Site) -> None:
    """Take part in the election of a leader, in the event loop that serves requests."""
    if site.leadership is not None:
        await site.leadership.start()


async def _close(site: Site) -> None:
    """Close the connections to other services, in the event loop that opened them."""
    if site.leadership is not None:
        await site.leadership.stop()
    if site.neighbours is not None:
        await site.neighbours.tree.parts.client.close()
    if site.pods is not None:
        await site.pods.client.close()


def _traced(endpoint: Handler, template: str, tracing: Tracer | None) -> Handler:
    if tracing is None:
        return endpoint

    async def answer(request: AsgiRequest) -> AsgiResponse:
        with tracing.request(request.method, template, request.headers) as answered:
            response = await endpoint(request)
            answered(response.status, dict(response.headers)[b"x-openstack-request-id"].decode())
            return response

    return answer


def _unknown(site: Site, apis: Mapping[str, Api], mounts: Mapping[str, str]) -> Handler:
    """Return the handler that answers requests for unknown paths.

    If the path begins with the prefix of an API, the error has the form of this API.
    """
    endpoints = {name: RouteEndpoint(site, api, mounts[name], "") for name, api in apis.items()}

    async def answer(request: AsgiRequest) -> AsgiResponse:
        path = request.scope["path"]
        best = max(
            (name for name in endpoints if path.startswith(mounts[name])),
            key=lambda name: len(mounts[name]),
            default=None,
        )
        if best is None:
            return _told(HTTPStatus.NOT_FOUND)
        return await endpoints[best].answer_unknown(request)

    return answer


def _told(status: HTTPStatus, headers: Mapping[str, str] | None = None) -> AsgiResponse:
    return AsgiResponse(status, msgspec.json.encode({"error": status.phrase}), headers or {})


def _add_others(
    paths: PathTable, site: Site, is_ready: Callable[[], str | None], document: Mapping[str, Any]
) -> None:
    """Add the paths that belong to no API. These paths need no token."""

    async def is_alive() -> AsgiResponse:
        """Answer 200 as long as the process runs."""
        return AsgiResponse(HTTPStatus.OK, b"ok", {}, TEXT)

    async def readiness() -> AsgiResponse:
        """Answer 200 if the service can make decisions and the database answers.

        Otherwise, answer 503.
        """
        reason = is_ready()
        if reason is None:
            try:
                await asyncio.wait_for(site.engine.ping(), READY_WITHIN_S)
            except Refusal as refusal:
                reason = refusal.message
            except TimeoutError:
                reason = "the database does not answer"
        status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
        return AsgiResponse(status, (reason or "ready").encode(), {}, TEXT)

    async def measurements() -> AsgiResponse:
        """Return the metrics of all worker processes in the format of Prometheus."""
        of_workers = site.settings.serving.workers > 1
        text = await asyncio.to_thread(lambda: metrics.exposition(of_workers=of_workers))
        return AsgiResponse(HTTPStatus.OK, text, {}, CONTENT_TYPE_LATEST)

    async def description() -> AsgiResponse:
        """Return the OpenAPI document."""
        return AsgiResponse(HTTPStatus.OK, msgspec.json.encode(document), {})

    paths.add("/healthz", _only(PROBES, is_alive))
    paths.add("/readyz", _only(PROBES, readiness))
    paths.add("/metrics", _only(("GET",), measurements))
    paths.add("/openapi.json", _only(("GET",), description))


def _only(methods: tuple[str, ...], give: Callable[[], Any]) -> Handler:
    async def answer(request: AsgiRequest) -> AsgiResponse:
        if request.method not in methods:
            allow = {"allow": ", ".join(methods)}
            return _told(HTTPStatus.METHOD_NOT_ALLOWED, allow)
        response: AsgiResponse = await give()
        return response

    return answer
