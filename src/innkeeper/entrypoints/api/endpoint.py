"""The steps of a request: id, token, version, route, policy, body, handler, answer.

The order of these steps matters. Without a token, a client learns nothing about paths. Without
permission, a client learns nothing about bodies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus

import structlog

from innkeeper.domain import hops
from innkeeper.domain.errors import Forbidden, Invalid, NotFound, Refusal
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.versions import Version
from innkeeper.engine import callers
from innkeeper.engine.callers import Caller, ClientConnection
from innkeeper.entrypoints.api import (
    auth_zones,
    faults,
    forwarding,
    leader_calls,
    metrics,
    project_paths,
    unpacking,
)
from innkeeper.entrypoints.api.asgi import BODILESS, AsgiRequest, AsgiResponse
from innkeeper.entrypoints.api.connections import CLIENT
from innkeeper.entrypoints.api.content_types import accepts
from innkeeper.entrypoints.api.faults import UNKNOWN_PATH, HttpRefusal
from innkeeper.entrypoints.api.leader_calls import ForwardedCall
from innkeeper.entrypoints.api.microversions import VersionTable, spans
from innkeeper.entrypoints.api.pods.door import forwarding as door_forwarding
from innkeeper.entrypoints.api.routing import JSON, Answer, Api, Call, Route
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.validation import decode_json, query_for_schema
from innkeeper.entrypoints.api.versioned_checks import Checks

LOG = structlog.get_logger("innkeeper.api")
UNVERSIONED = Version(1, 0)
LINK_SCHEME = "http://"


class RouteEndpoint:
    """The handler for all methods of one path of an API."""

    def __init__(self, site: Site, api: Api, mount: str, path: str) -> None:
        self.site = site
        self.api = api
        self.mount = mount
        self.path = path
        self._routes: dict[str, list[Route]] = {}
        for route in api.routes:
            if route.path == path:
                self._routes.setdefault(route.method, []).append(route)
        self._checks: dict[tuple[str, Version], Checks] = {}
        self._version_headers: dict[Version, Mapping[str, str]] = {}
        self._setting = site.settings.serving
        self._bytes_max = {
            method: max(self._largest(each) for each in routes)
            for method, routes in self._routes.items()
        }
        # An open route ignores the token, so that clients can always read version documents. An
        # unknown method of an open path gets a 405, even if the token is invalid.
        self._open_methods = {
            method
            for method, routes in self._routes.items()
            if any(route.rule is None for route in routes)
        }

    async def __call__(self, request: AsgiRequest) -> AsgiResponse:
        """Answer one request. An exception becomes an error answer, so this method never raises."""
        started_s = time.perf_counter()
        headers = request.headers
        request_id = "req-" + self.site.ids.uuid()
        try:
            bytes_max = self._bytes_max.get(request.method, self._setting.body_bytes_max)
            announced = self.site.load.begin(headers, self._setting, bytes_max)
            try:
                answer, version = await self._carry_out(request, request_id)
            finally:
                self.site.load.end(announced)
            response = self._response(answer, request_id, version)
        except Exception as error:
            answer, response = self._error(error, request, request_id)
        took_s = time.perf_counter() - started_s
        metrics.observe(self.api.name, self.path, request.method, answer.status, took_s)
        LOG.info(
            "request",
            request_id=request_id,
            method=request.method,
            path=request.scope["path"],
            status=answer.status,
            took_ms=round(took_s * 1000, 2),
        )
        return response

    async def answer_unknown(self, request: AsgiRequest) -> AsgiResponse:
        """Answer a request for an unknown path under this API's prefix."""
        error: Refusal = NotFound(UNKNOWN_PATH)
        request_id = "req-" + self.site.ids.uuid()
        try:
            self._origin(request)
            await self.site.authenticator.authenticate(request.headers, request_id)
            if self.api.versions is not None:
                self.api.versions.requested(request.headers)
        except Refusal as first:
            error = first
        answer, response = self._error(error, request, request_id)
        LOG.info(
            "request",
            request_id=request_id,
            method=request.method,
            path=request.scope["path"],
            status=answer.status,
        )
        return response

    async def _carry_out(self, request: AsgiRequest, request_id: str) -> tuple[Answer, Version]:
        # Find the address first, because even a 401 contains it.
        origin = self._origin(request)
        context = await self._authenticate(request, request_id)
        callers.enter(self._caller(context, request.scope.get(CLIENT)))
        if context.hop is not None:
            # A zone parent must not learn this zone's address.
            origin = LINK_SCHEME + context.hop.tree.link_host
        address = origin + self.mount
        versions = self.api.versions
        version = versions.requested(request.headers) if versions else UNVERSIONED
        unpacking.check_announced(request)
        route = self._route(request.method, version, request.scope["raw_path"])
        if context.hop is not None:
            target = unpacking.target(request).removeprefix(self.mount)
            auth_zones.check_target(context, route, request.method, target)
        checks = self._checks_of(route, version)
        _check_headers(request.headers, route, checks)
        query = unpacking.query(request)
        project_paths.check(request.scope, context)
        self._demand(route, context, query)
        if checks.query is not None:
            checks.query.check(query_for_schema(query, self.api.has_single_query_values))
        call = Call(
            site=self.site,
            api=self.api,
            route=route,
            context=context,
            version=version,
            params=unpacking.params(request),
            query=query,
            body=None,
            headers=request.headers,
            address=address,
            mount=self.mount,
            now=self.site.clock(),
            client=request.client,
            path_project=request.scope.get(project_paths.KEY),
        )
        if self.site.neighbours is not None and route.path.startswith(forwarding.ONE_SERVER):
            body = await self._read(request, call)
            target = unpacking.target(request).removeprefix(self.mount)
            answer = await forwarding.forwarded(call, target, body)
            if answer is not None:
                return answer, version
        await self._prepare(request, checks, call)
        answer = await self._through_door(call)
        if answer is None and self.site.leadership is not None:
            answer = await leader_calls.forwarded(self.site.leadership, call)
        if answer is not None:
            self._challenge(answer, request)
            return answer, version
        answer = await leader_calls.carried_out(checks, call)
        if context.hop is not None and auth_zones.has_ids(route):
            auth_zones.remove_prefix(answer.body, context.hop.parent.prefix)
        return answer, version

    async def answer_forwarded(self, forwarded: ForwardedCall, client: ClientConnection) -> Answer:
        """Carry out a call that another process has checked.

        An exception becomes an error answer.
        """
        version = leader_calls.version_of(forwarded)
        try:
            route = self._route_at(forwarded.method, version)
            checks = self._checks_of(route, version)
            call = leader_calls.call_of(forwarded, self.site, self.api, route, self.mount)
            callers.enter(self._caller(call.context, client))
            if self._decode_body(call.raw_body or b"", checks, call, is_valid=True):
                return await leader_calls.carried_out(checks, call)
            for up in checks.ups:
                up(call)
            return await leader_calls.carried_out(checks, call)
        except Exception as error:
            request_id = forwarded.caller.request_id
            accept = forwarded.headers.get("accept", JSON)
            return self._error_answer(error, request_id, version, accept)

    async def _through_door(self, call: Call) -> Answer | None:
        """Forward a call to pods (clouds behind this service), and return their answer.

        Returns ``None`` if this service must answer the call itself.
        """
        if self.site.door is None:
            return None
        kind = door_forwarding.kind_of(call.route.path)
        await door_forwarding.settled(call, self.site.door)
        return None if kind is None else await door_forwarding.answered(call, kind)

    async def _authenticate(self, request: AsgiRequest, request_id: str) -> RequestContext:
        is_open = request.method in self._open_methods
        if is_open or (self._open_methods and request.method not in self._routes):
            return RequestContext(request_id=request_id)
        return await self.site.authenticator.authenticate(request.headers, request_id)

    def _checks_of(self, route: Route, version: Version) -> Checks:
        checks = self._checks.get((route.method, version))
        if checks is None:
            checks = Checks(self.api, route, version)
            self._checks[route.method, version] = checks
        return checks

    def _caller(self, context: RequestContext, client: ClientConnection | None) -> Caller:
        # Carry out a zone parent's request even if its connection ends, because the parent may
        # already have carried out its own part.
        must_finish = context.hop is not None
        return Caller(callers.group_of(context), None if must_finish else client)

    def _demand(self, route: Route, context: RequestContext, query: dict[str, list[str]]) -> None:
        if route.rule is None:
            return
        self._demand_project(context)
        target = {"project_id": context.project_id, "user_id": context.user_id}
        for name in route.policy_parameters:
            target[name] = query[name][-1] if name in query else None
        self.site.policy.demand(route.rule.name, context, target)

    def _demand_project(self, context: RequestContext) -> None:
        has_project = context.project_id is not None or context.agent_identity is not None
        # Do not check the project of a zone parent here, because ``auth_zones`` checks it.
        has_project = has_project or context.hop is not None
        if not self.api.needs_project or context.is_admin or has_project:
            return
        raise Forbidden(f"The {self.api.title} API requires a token for a project.")

    def _route(self, method: str, version: Version, raw_path: bytes) -> Route:
        plain = raw_path.replace(b"%2F", b"/").replace(b"%2f", b"/")
        # The table of paths treats "/x//y" and "/x/" as "/x/y" and "/x". If the id in a path is
        # empty, the path has a double slash, and "y" would be mistaken for the id.
        is_other_path = b"//" in plain or (self.api.has_exact_slashes and plain.endswith(b"/"))
        if self.path and is_other_path:
            raise NotFound(UNKNOWN_PATH)
        return self._route_at(method, version)

    def _route_at(self, method: str, version: Version) -> Route:
        routes = self._routes.get(method)
        if routes is None:
            allow = ", ".join(sorted(self._routes))
            raise HttpRefusal(
                405,
                f"The method {method} is not allowed for this resource.",
                headers={"allow": allow} if allow else None,
            )
        for route in routes:
            if spans(route.since, route.until, version):
                return route
        if routes[-1].is_refused_before:
            raise HttpRefusal(405, f"The method {method} is not allowed for this resource.")
        raise NotFound(UNKNOWN_PATH)

    async def _prepare(self, request: AsgiRequest, checks: Checks, call: Call) -> None:
        """Read the body, and upgrade the call to the newest version of the API."""
        try:
            is_ready = await self._read_body(request, checks, call)
            if not is_ready:
                for up in checks.ups:
                    up(call)
        except Invalid:
            # The error for a missing resource takes precedence over the error for an invalid body.
            if call.route.subject is not None:
                await call.route.subject(call)
            raise

    async def _read_body(self, request: AsgiRequest, checks: Checks, call: Call) -> bool:
        """Set ``call.body``, and return whether the body needs no upgrade to the newest version."""
        route, timeout_s = call.route, self._setting.client_timeout_s
        if route.takes_stream:
            call.body = unpacking.parts(request, timeout_s)
            return False
        return self._decode_body(await self._read(request, call), checks, call)

    def _decode_body(
        self, body: bytes, checks: Checks, call: Call, *, is_valid: bool = False
    ) -> bool:
        if checks.body is None:
            # A route without a body schema ignores the body.
            return False
        if checks.decode is not None:
            call.body = checks.decode(body)
            if call.body is not None:
                return True
        call.body = decode_json(body, whole_floats=self.api.takes_whole_floats)
        if not is_valid:
            checks.body.check(call.body)
        return False

    async def _read(self, request: AsgiRequest, call: Call) -> bytes:
        """Read the body of a request, or return the body that was read before."""
        if call.raw_body is not None:
            return call.raw_body
        route, timeout_s = call.route, self._setting.client_timeout_s
        # A slow body from an unauthenticated client must not use up the limits on requests.
        is_open = route.rule is None
        body = await unpacking.body(request, self._largest(route), timeout_s, is_total=is_open)
        if call.context.hop is not None:
            await auth_zones.check_body(call.context.hop, route, body, self.site.engine)
        call.raw_body = body
        return body

    def _largest(self, route: Route) -> int:
        """Return the maximum size of a route's body in bytes."""
        most = self._setting.body_bytes_max
        return min(most, route.body_bytes_max or most)

    def _origin(self, request: AsgiRequest) -> str:
        host = unpacking.host(request)
        public = self._setting.public_url
        if public is not None:
            return public.rstrip("/")
        return f"{request.scope['scheme']}://{host}"

    def _error(
        self, error: Exception, request: AsgiRequest, request_id: str
    ) -> tuple[Answer, AsgiResponse]:
        """Convert an exception to an answer in this API's own form."""
        version = _version_or_none(self.api.versions, request.headers)
        accept = request.headers.get("accept", JSON)
        answer = self._error_answer(error, request_id, version, accept)
        self._challenge(answer, request)
        return answer, self._response(answer, request_id, version)

    def _challenge(self, answer: Answer, request: AsgiRequest) -> None:
        """If a client's credentials were rejected, tell the client where to get a new token."""
        is_of_zone = hops.is_one(request.headers.get("x-auth-token", ""))
        if answer.status != HTTPStatus.UNAUTHORIZED or is_of_zone:
            return
        settings = self.site.settings
        url = settings.authenticating.keystone_url
        if settings.authenticating.auth != "keystone" or url is None:
            url = self._origin(request) + settings.serving.identity_prefix
        answer.headers["www-authenticate"] = f'Keystone uri="{url}"'

    def _error_answer(
        self, error: Exception, request_id: str, version: Version | None, accept: str
    ) -> Answer:
        if not isinstance(error, Refusal):
            LOG.error("accident", request_id=request_id, exc_info=error)
        fault = faults.fault_of(error, request_id, version, accept)
        body, media_type = self.api.fault_form(fault)
        headers = {**fault.headers, "content-type": media_type}
        return Answer(fault.status, body, headers, fault.is_versionless)

    def _response(self, answer: Answer, request_id: str, version: Version | None) -> AsgiResponse:
        headers = answer.headers
        headers["x-openstack-request-id"] = request_id
        versions = self.api.versions
        if versions is not None and version is not None and not answer.is_versionless:
            told = self._version_headers.get(version)
            if told is None:
                told = self._version_headers[version] = versions.headers(version)
            vary = headers.get("vary")
            headers.update(told)
            if vary is not None:
                headers["vary"] = vary
        body = answer.body
        media_type = headers.pop("content-type", JSON)
        if body is None:
            if answer.status not in BODILESS:
                headers["content-length"] = "0"
            return AsgiResponse(answer.status, None, headers)
        raw = body if isinstance(body, bytes) else faults.encode(body)
        return AsgiResponse(answer.status, raw, headers, media_type)


def _check_headers(headers: Mapping[str, str], route: Route, checks: Checks) -> None:
    """Reject a request whose ``Accept`` or ``Content-Type`` header does not suit the route."""
    if route.answers is not None and not accepts(headers.get("accept"), route.answers):
        raise HttpRefusal(406, f"Only {route.answers} is provided")
    if route.takes_stream or checks.body is not None:
        unpacking.check_media_type(route, headers.get("content-type", ""))


def _version_or_none(versions: VersionTable | None, headers: Mapping[str, str]) -> Version | None:
    if versions is None:
        return None
    try:
        return versions.requested(headers)
    except HttpRefusal:
        return None
