"""Forwards writing calls to the leader, after authentication, policy checks and validation.

Always true: the process that received a request does all checks of the request. The leader only
carries out the request, with the same handler, and returns the whole answer. So the writes of all
processes run in the leader's writer thread, where they share commits.

If the leader did not answer a request, the request may have been carried out. In this case, a boot
is repeated. This is safe, because the ids of the servers are chosen before the first attempt, and a
repeated boot first looks up these ids. Any other request gets a 503, which says that the request
may have been carried out.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.errors import Refusal, Unanswered
from innkeeper.domain.identity import AgentIdentity, RequestContext
from innkeeper.domain.versions import Version
from innkeeper.engine import callers, metrics
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.connection import NotForwarded
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.engine.leader.listener import Handler, NotServed
from innkeeper.engine.retry import FORWARD_WITHIN_S, FORWARDS_MAX
from innkeeper.entrypoints.api import faults
from innkeeper.entrypoints.api.content_types import JSON
from innkeeper.entrypoints.api.routing import Answer, Api, Call, Route
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.versioned_checks import Checks

KIND = "call"
TOKEN = "x-auth-token"  # noqa: S105 - a header's name
"""The header with the token. All other headers are forwarded, because the leader does not
authenticate the call again."""
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class ForwardedContext(msgspec.Struct, array_like=True, frozen=True):
    """The context of a forwarded request; see :class:`RequestContext`."""

    request_id: str
    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...]
    user_name: str | None
    project_name: str | None
    is_system: bool
    agent: tuple[str, tuple[str, ...]] | None


class ForwardedCall(msgspec.Struct, array_like=True, frozen=True):
    """A :class:`Call` as plain data. ``template`` is the path of the call's route."""

    api: str
    template: str
    method: str
    version: tuple[int, int]
    caller: ForwardedContext
    params: dict[str, str]
    query: dict[str, list[str]]
    body: bytes
    headers: dict[str, str]
    address: str
    now: datetime
    client: str
    path_project: str | None
    new_ids: tuple[str, ...]
    is_repeat: bool


class ForwardedAnswer(msgspec.Struct, array_like=True, frozen=True):
    """The leader's answer. ``body`` has the encoded bytes, or ``None`` for no body."""

    status: int
    body: bytes | None
    headers: dict[str, str]
    is_versionless: bool


_CALLS = msgspec.msgpack.Decoder(ForwardedCall)
_ANSWERS = msgspec.msgpack.Decoder(ForwardedAnswer)
decoded: Callable[[bytes], ForwardedCall] = _CALLS.decode


async def forwarded(leadership: Leadership, call: Call) -> Answer | None:
    """Return the leader's answer to a call, or ``None`` if this process must carry it out.

    Some calls are always carried out in this process, such as calls that only read.

    If the leader does not answer a boot whose server ids are chosen, the boot is sent again, at
    most ``FORWARDS_MAX`` times in total. After the last attempt, this process must carry it out.
    Raises :class:`Unanswered` if the leader does not answer another call, or if the attempts take
    too long.
    """
    route = call.route
    stays = route.method in READING or route.is_read or route.takes_stream or route.rule is None
    # A zone parent's identity is bound to its connection with this process.
    if stays or call.context.hop is not None or leadership.is_leading:
        return None
    if not leadership.is_forwarding:
        metrics.FORWARDED.labels("kept").inc()
        return None
    if route.new_ids is not None:
        call.new_ids = route.new_ids(call)
    begun_s = time.perf_counter()
    for _ in range(FORWARDS_MAX):
        try:
            return await _asked(leadership, call)
        except Unanswered:
            is_late = time.perf_counter() - begun_s > FORWARD_WITHIN_S
            if not call.new_ids or is_late:
                raise
            call.is_repeat = True
    return None


async def _asked(leadership: Leadership, call: Call) -> Answer | None:
    outcome = "unanswered"
    try:
        plain = msgspec.msgpack.encode(_plain(call))
        payload = await leadership.ask(KIND, plain, callers.current().connection)
        outcome = "answered"
    except NotForwarded:
        outcome = "kept"
        return None
    finally:
        metrics.FORWARDED.labels(outcome).inc()
    answer = _ANSWERS.decode(payload)
    return Answer(answer.status, answer.body, answer.headers, answer.is_versionless)


def _plain(call: Call) -> ForwardedCall:
    context = call.context
    agent = context.agent_identity
    return ForwardedCall(
        api=call.api.name,
        template=call.route.path,
        method=call.route.method,
        version=(call.version.major, call.version.minor),
        caller=ForwardedContext(
            context.request_id,
            context.user_id,
            context.project_id,
            tuple(context.roles),
            context.user_name,
            context.project_name,
            context.is_system,
            None if agent is None else (agent.agent_name, agent.hosts),
        ),
        params=call.params,
        query=call.query,
        body=call.raw_body or b"",
        headers={name: text for name, text in call.headers.items() if name != TOKEN},
        address=call.address,
        now=call.now,
        client=call.client,
        path_project=call.path_project,
        new_ids=call.new_ids,
        is_repeat=call.is_repeat,
    )


async def carried_out(checks: Checks, call: Call) -> Answer:
    """Run a call's handler.

    Raises :class:`Unanswered` if a repeated call is rejected. In this case the outcome is unknown,
    because a suspended process may still carry out the first attempt.
    """
    try:
        return await checks.handled(call)
    except Refusal as refusal:
        if call.is_repeat:
            raise Unanswered from refusal
        raise


def call_of(forwarded: ForwardedCall, site: Site, api: Api, route: Route, mount: str) -> Call:
    """Convert a forwarded call to a :class:`Call`, whose body is not decoded yet."""
    return Call(
        site=site,
        api=api,
        route=route,
        context=_context_of(forwarded.caller),
        version=version_of(forwarded),
        params=forwarded.params,
        query=forwarded.query,
        body=None,
        headers=forwarded.headers,
        address=forwarded.address,
        mount=mount,
        now=forwarded.now,
        client=forwarded.client,
        path_project=forwarded.path_project,
        raw_body=forwarded.body,
        new_ids=forwarded.new_ids,
        is_repeat=forwarded.is_repeat,
    )


def _context_of(caller: ForwardedContext) -> RequestContext:
    return RequestContext(
        request_id=caller.request_id,
        user_id=caller.user_id,
        project_id=caller.project_id,
        roles=frozenset(caller.roles),
        user_name=caller.user_name,
        project_name=caller.project_name,
        is_system=caller.is_system,
        agent_identity=None if caller.agent is None else AgentIdentity(*caller.agent),
    )


def version_of(forwarded: ForwardedCall) -> Version:
    """Return the microversion of a forwarded call."""
    return Version(*forwarded.version)


def encoded(answer: Answer) -> bytes:
    """Return an answer in the form that is sent back to the forwarding process."""
    body: Any = answer.body
    if body is not None and not isinstance(body, bytes):
        body = faults.encode(body)
    headers = answer.headers
    if body is not None and "content-type" not in headers:
        headers = {**headers, "content-type": JSON}
    return msgspec.msgpack.encode(
        ForwardedAnswer(answer.status, body, headers, answer.is_versionless)
    )


Answerer = Callable[[ForwardedCall, ClientConnection], Awaitable[Answer]]


def handler_of(answerers: Mapping[tuple[str, str], Answerer]) -> Handler:
    """Return the leader's handler of forwarded calls.

    ``answerers`` has the function that carries out the calls of a path. The key is the name of the
    API and the template of the path.

    The handler raises :class:`NotServed` if the leader does not serve the path.
    """

    async def carry_out(payload: bytes, client: ClientConnection) -> bytes:
        call = decoded(payload)
        answerer = answerers.get((call.api, call.template))
        if answerer is None:
            raise NotServed
        return encoded(await answerer(call, client))

    return carry_out
