"""What a room tells the shell: routes, and what a handler gets and gives back.

A handler is ``async def name(call: Call) -> Answer``; it translates between the API's words
and a system's, and decides nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from innkeeper.domain.identity import RequestContext
from innkeeper.domain.moves import Asker
from innkeeper.domain.versions import Version
from innkeeper.engine.commands import Deciding, Together, Work
from innkeeper.engine.retry import Retry, again
from innkeeper.entrypoints.api.faults import FaultForm
from innkeeper.entrypoints.api.microversions import Schema, VersionTable
from innkeeper.entrypoints.api.options import Options
from innkeeper.entrypoints.api.site import Site

T = TypeVar("T")

JSON = "application/json"


@dataclass(slots=True)
class Answer:
    """A handler's answer. ``body`` is made of plain values; ``None`` is an empty body.

    ``bytes`` go out as they are, with ``content-type`` from ``headers``.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Call:
    """One request, checked, and brought up to the newest version.

    ``version`` is the one the client speaks; handlers do not look at it. ``client`` is the
    network address that it calls from, as far as proxies are believed. ``address`` is the
    scheme, address and prefix under which the client reached this API, for links; ``mount``
    is the prefix alone. ``query`` holds all values of each parameter, in order.
    ``options`` say what an older request means that its body and its query cannot say.
    """

    site: Site
    api: Api
    route: Route
    context: RequestContext
    version: Version
    params: dict[str, str]
    query: dict[str, list[str]]
    body: Any
    headers: Mapping[str, str]
    address: str
    mount: str
    now: datetime
    client: str = ""
    options: Options = field(default_factory=Options)

    @property
    def rule(self) -> str:
        """The name of the rule that guards the route, which must not be an open one."""
        assert self.route.rule is not None, "a route that is open to strangers has no rule"
        return self.route.rule.name

    def asker(self, *, may_override: bool = False) -> Asker:
        """Who asks, in the words of the systems."""
        context = self.context
        return Asker(
            request_id=context.request_id,
            project_id=context.project_id,
            user_id=context.user_id,
            may_override=may_override,
            is_admin=context.is_admin,
        )

    def last(self, name: str, default: str | None = None) -> str | None:
        """The last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else default

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` in a reading transaction, off the event loop."""
        return await self.site.engine.read(work)

    async def write(self, work: Work[T], lines: int = 1, retry: Retry | None = None) -> T:
        """Run ``work`` as one part of a group commit; returns when it is on the disk.

        Whoever writes many ``lines`` says so, and shares the commit with fewer others. With a
        row of the table of retries, ``work`` is done again as that row says.
        """
        if retry is None:
            return await self.site.engine.write(work, lines)
        attempts_max = retry.attempts(self.site.settings)
        return await again(lambda: self.site.engine.write(work, lines), retry, attempts_max)

    async def write_together(
        self, work: Together[T], item: T, lines: int = 1, *, retry: Retry
    ) -> None:
        """As :meth:`write`, with ``work`` done once for all who wait with it at the moment.

        ``work`` gives for each item ``None`` or its refusal, of which nothing was written.
        """
        engine, attempts_max = self.site.engine, retry.attempts(self.site.settings)
        await again(lambda: engine.write_together(work, item, lines), retry, attempts_max)

    async def decide(self, work: Deciding[T]) -> T:
        """As :meth:`write`, for work that needs a host; it is given the means to decide too."""
        return await self.site.engine.decide(work, self.now)

    def allows(self, rule: str, **target: Any) -> bool:
        """Whether policy lets the caller do ``rule`` to a thing with these attributes."""
        return self.site.policy.allows(rule, self.context, target)

    def demand(self, rule: str, **target: Any) -> None:
        """As :meth:`allows`, but raises :class:`Forbidden` with the rule's name."""
        self.site.policy.demand(rule, self.context, target)


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule: its name, its default in oslo.policy's language, and what it is about.

    A rule without a description says what the route that holds it says of itself.
    ``legacy`` is a default of older days, by which the rule passes as well where the settings
    say so. ``needs_project_scope`` refuses tokens for the whole system, unless they say
    otherwise. ``is_for_agents`` lets in agents with a credential of their own, to whom all
    other rules say no whatever their checks are.
    """

    name: str
    default: str
    description: str = ""
    legacy: str | None = None
    needs_project_scope: bool = False
    is_for_agents: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One method of one path. ``path`` is relative to the API's prefix.

    ``rule`` must allow the call before its body is read; ``None`` leaves the route open to
    everybody, token or not. ``summary`` is what the public pages say of the route; where it is
    left out, the first paragraph of the handler's docstring says it. ``body`` and ``query`` are
    the newest version's schemas; a route without a body schema accepts no body. ``decode`` may
    turn the bytes of a plain good body into the handler's input at once; it returns ``None`` to
    leave the body, and every error message, to the schema. It is asked at the newest version,
    and at those from ``decode_since`` on, whose schemas take what it takes and mean the same.
    ``media_types`` are those a body may come in.
    ``takes_stream`` leaves the body unread: the handler finds an iterator of its parts, and
    must not keep more of them than fits the memory.
    ``body_bytes_max`` is a limit below that of the settings, for routes that are open.
    ``answers`` is the media type of good answers; who does not accept it is told so (406).
    ``policy_parameters`` are those of the query that the rule is to judge by as well.
    ``subject`` raises the refusal that goes before any complaint about the body.
    ``is_refused_before`` answers 405 instead of 404 at versions before ``since``.
    """

    method: str
    path: str
    handler: Handler
    rule: Rule | None
    summary: str = ""
    body: Schema | None = None
    query: Schema | None = None
    since: Version | None = None
    until: Version | None = None
    decode: Callable[[bytes], Any] | None = None
    decode_since: Version | None = None
    media_types: tuple[str, ...] = (JSON,)
    takes_stream: bool = False
    answers: str | None = None
    success: tuple[int, ...] = (200,)
    body_bytes_max: int | None = None
    policy_parameters: tuple[str, ...] = ()
    subject: Callable[[Call], Awaitable[None]] | None = None
    is_refused_before: bool = False

    def __post_init__(self) -> None:
        if not self.summary:
            told, _, _ = (inspect.getdoc(self.handler) or "").partition("\n\n")
            object.__setattr__(self, "summary", " ".join(told.split()))


def all_rules(routes: Iterable[Route], others: Iterable[Rule] = ()) -> tuple[Rule, ...]:
    """The rules that routes hold, in their order, and others that only handlers ask."""
    found: dict[str, Rule] = {}
    for route in routes:
        if route.rule is None:
            continue
        rule = route.rule
        told = rule if rule.description else replace(rule, description=route.summary)
        assert found.setdefault(rule.name, told) == told, f"one {rule.name}"
    for rule in others:
        assert rule.name not in found and rule.description, f"one {rule.name}, and what it is"
        found[rule.name] = rule
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Api:
    """One public API: a prefix, its routes, its dialect of errors and versions.

    ``service_type`` is the word in the service catalog. ``body_refusal`` and
    ``query_refusal`` word a schema's complaint as clients of this API know it.
    """

    name: str
    service_type: str
    title: str
    routes: tuple[Route, ...]
    rules: tuple[Rule, ...]
    fault_form: FaultForm
    versions: VersionTable | None = None
    body_refusal: Callable[[Any], str] = str
    query_refusal: Callable[[Any], str] = str
    has_single_query_values: bool = False
    takes_whole_floats: bool = False
    """Whether ``8.0`` is as good as ``8`` in a body."""
    has_most_telling_complaints: bool = False
    """Whether of a schema's complaints the one that tells most is made, not the first."""
    has_exact_slashes: bool = False
    """Whether a slash at the end makes another path, which is not there."""
    needs_project: bool = False
    """Whether a token without a project opens nothing here, unless it is an administrator's."""
    catalog_path: str = ""
    """What the catalog's address has behind the prefix, such as ``/v3``."""
