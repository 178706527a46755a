"""Routes, rules and APIs as the rooms declare them, and the calls and answers of their handlers.

A handler is ``async def name(call: Call) -> Answer``. It translates between an API and a system,
and decides nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from innkeeper.domain.identity import RequestContext
from innkeeper.domain.moves import Initiator
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
    """A handler's answer. ``body`` has plain values, or is ``None`` without a body.

    ``bytes`` are sent as they are, with the ``content-type`` of ``headers``. An answer that
    ``is_versionless`` has no version header.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    is_versionless: bool = False


@dataclass(slots=True)
class Call:
    """A request, validated and upgraded to the newest version.

    ``version`` is the client's, which handlers ignore. ``client`` is the client's network address,
    as reported by trusted proxies. ``address`` is scheme, host and prefix of this API for links,
    and ``mount`` the prefix alone. ``query`` has all values of each parameter, in order.
    ``options`` are what an older request means that the newest body and query cannot express.
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
        """The name of the route's rule; the route must not be open."""
        assert self.route.rule is not None, "an open route has no rule"
        return self.route.rule.name

    def initiator(self, *, may_override: bool = False) -> Initiator:
        """The caller, as the systems know it."""
        context = self.context
        return Initiator(
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
        """Run ``work`` in a read transaction, off the event loop."""
        return await self.site.engine.read(work)

    async def write(self, work: Work[T], lines: int = 1, retry: Retry | None = None) -> T:
        """Run ``work`` as a part of a group commit, and return when it is durable.

        ``lines`` is the number of rows; a commit with many rows is shared with fewer other writes.
        ``retry`` repeats ``work`` after a conflict.
        """
        if retry is None:
            return await self.site.engine.write(work, lines)
        attempts_max = retry.attempts(self.site.settings)
        return await again(lambda: self.site.engine.write(work, lines), retry, attempts_max)

    async def write_together(
        self, work: Together[T], item: T, lines: int = 1, *, retry: Retry
    ) -> None:
        """As :meth:`write`, with one run of ``work`` for the items of all calls that wait.

        ``work`` returns for each item ``None``, or an error if nothing was written for it.
        """
        engine, attempts_max = self.site.engine, retry.attempts(self.site.settings)
        await again(lambda: engine.write_together(work, item, lines), retry, attempts_max)

    async def decide(self, work: Deciding[T]) -> T:
        """As :meth:`write`, for work that places servers; it gets the context of decisions too."""
        return await self.site.engine.decide(work, self.now)

    def allows(self, rule: str, **target: Any) -> bool:
        """Whether policy allows ``rule`` for a target with these attributes."""
        return self.site.policy.allows(rule, self.context, target)

    def demand(self, rule: str, **target: Any) -> None:
        """Raise :class:`Forbidden` with the rule's name unless policy allows it."""
        self.site.policy.demand(rule, self.context, target)


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule: its name, its default in oslo.policy's language, and its description.

    A rule without a description takes its route's summary. ``legacy`` is an older default that the
    settings may allow as well. ``needs_project_scope`` rejects tokens for the whole system, unless
    the settings allow them. ``is_for_agents`` admits agents with credentials of their own; all
    other rules reject them.
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

    ``rule`` must allow the call before its body is read; ``None`` leaves the route open, also
    without a token. ``summary`` is for the public pages; its default is the first paragraph of the
    handler's docstring. ``body`` and ``query`` are the newest version's schemas; without a body
    schema the body is ignored. ``decode`` may decode a valid body faster than the schema; it
    returns ``None`` to leave the body and its errors to the schema. It is used at the newest
    version, and at those from ``decode_since`` on, whose schemas accept and mean the same.
    ``media_types`` are those of the body.
    ``takes_stream`` gives the handler an iterator over the body, which it must not keep as a whole.
    ``body_bytes_max`` is a limit below that of the settings, for open routes.
    ``answers`` is the media type of answers; 406 if the client does not accept it.
    ``policy_parameters`` are query parameters that the rule needs as its target.
    ``subject`` raises errors that come before those about the body.
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
            summary, _, _ = (inspect.getdoc(self.handler) or "").partition("\n\n")
            object.__setattr__(self, "summary", " ".join(summary.split()))


def all_rules(routes: Iterable[Route], others: Iterable[Rule] = ()) -> tuple[Rule, ...]:
    """The rules of routes, in their order, and others that only handlers check."""
    found: dict[str, Rule] = {}
    for route in routes:
        if route.rule is None:
            continue
        rule = route.rule
        if not rule.description:
            rule = replace(rule, description=route.summary)
        assert found.setdefault(rule.name, rule) == rule, f"one {rule.name}"
    for rule in others:
        assert rule.name not in found and rule.description, f"one {rule.name}, with a description"
        found[rule.name] = rule
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Api:
    """One public API: its routes and rules, and its forms of errors and versions.

    ``service_type`` is its name in the service catalog. ``body_refusal`` and ``query_refusal`` word
    schema violations. ``takes_whole_floats`` accepts ``8.0`` as ``8`` in a body.
    ``has_most_telling_complaints`` reports the most relevant of a schema's violations, not the
    first. With ``has_exact_slashes`` a trailing slash makes an unknown path. ``needs_project``
    rejects tokens without a project, except an administrator's. ``catalog_path`` follows the prefix
    in the catalog's address, such as ``/v3``.
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
    has_most_telling_complaints: bool = False
    has_exact_slashes: bool = False
    needs_project: bool = False
    catalog_path: str = ""
