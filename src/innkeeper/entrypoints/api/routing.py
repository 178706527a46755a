"""Declarations of routes, rules and APIs, and the calls and answers of handlers.

A handler is ``async def name(call: Call) -> Answer``. It translates between an API and a system,
and makes no decisions.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from innkeeper.domain.identity import RequestContext
from innkeeper.domain.moves import Initiator
from innkeeper.domain.versions import Version
from innkeeper.engine.commands import Deciding, DecidingTogether, Together, Work
from innkeeper.engine.retry import again
from innkeeper.engine.retry_rows import Retry
from innkeeper.entrypoints.api.faults import FaultForm
from innkeeper.entrypoints.api.microversions import Schema, VersionTable
from innkeeper.entrypoints.api.options import Options
from innkeeper.entrypoints.api.site import Site

T = TypeVar("T")
R = TypeVar("R")

JSON = "application/json"


@dataclass(slots=True)
class Answer:
    """A handler's answer. ``body`` consists of plain values, or is ``None`` if there is no body.

    A body of ``bytes`` is sent unchanged, with the ``content-type`` in ``headers``. If
    ``is_versionless`` is true, the answer has no version header.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    is_versionless: bool = False


@dataclass(slots=True)
class Call:
    """A request, validated and upgraded to the newest version.

    ``version`` is the requested microversion, which handlers do not need. ``client`` is the
    client's network address, as reported by trusted proxies. ``path_project`` is the project id in
    the path, if the API has such paths. Links begin with ``address``, which is the scheme, the host
    and the API's prefix. ``mount`` is only the prefix. ``query`` has all values of each parameter,
    in order. ``raw_body`` is the body as it was received, or ``None`` before it is read.
    ``options`` express older behavior that the newest body and query cannot express.

    ``new_ids`` are the ids of the resources that the call creates, if they were chosen before the
    call was forwarded. If ``is_repeat`` is true, another process may already have carried out the
    call, with the same ids.
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
    path_project: str | None = None
    options: Options = field(default_factory=Options)
    raw_body: bytes | None = None
    new_ids: tuple[str, ...] = ()
    is_repeat: bool = False

    @property
    def rule(self) -> str:
        """The name of the route's rule. Do not use this on an open route, which has no rule."""
        assert self.route.rule is not None, "an open route has no rule"
        return self.route.rule.name

    def initiator(self, *, may_override: bool = False) -> Initiator:
        """Return the caller of an action, as the systems record it."""
        context = self.context
        return Initiator(
            request_id=context.request_id,
            project_id=context.project_id,
            user_id=context.user_id,
            may_override=may_override,
            is_admin=context.is_admin,
        )

    def last(self, name: str, default: str | None = None) -> str | None:
        """Return the last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else default

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` in a read transaction, off the event loop."""
        return await self.site.engine.read(work)

    async def write(self, work: Work[T], lines: int = 1, retry: Retry | None = None) -> T:
        """Run ``work`` in a group commit, and return its result when the commit is durable.

        ``lines`` is the number of rows that ``work`` writes, which limits how many other writes
        share the commit. ``retry`` determines how often ``work`` is repeated after a conflict.
        """
        if retry is None:
            return await self.site.engine.write(work, lines)
        attempts_max = retry.attempts(self.site.settings)
        return await again(lambda: self.site.engine.write(work, lines), retry, attempts_max)

    async def write_together(
        self, work: Together[T, R], item: T, lines: int = 1, *, retry: Retry
    ) -> R:
        """Run ``work`` in a group commit as in :meth:`write`, together with waiting calls.

        Other calls with the same ``work`` may wait for the same commit. Then ``work`` is run only
        once, and gets the items of all these calls. For each item, ``work`` returns an answer. If
        ``work`` wrote nothing for an item, it may return an error instead of an answer.
        """
        engine, attempts_max = self.site.engine, retry.attempts(self.site.settings)
        return await again(lambda: engine.write_together(work, item, lines), retry, attempts_max)

    async def decide(self, work: Deciding[T], retry: Retry | None = None) -> T:
        """Run ``work`` in a group commit as in :meth:`write`, with a context for choosing hosts."""
        engine = self.site.engine
        if retry is None:
            return await engine.decide(work, self.now)
        attempts_max = retry.attempts(self.site.settings)
        return await again(lambda: engine.decide(work, self.now), retry, attempts_max)

    async def decide_together(self, work: DecidingTogether[T, R], item: T, *, retry: Retry) -> R:
        """Run ``work`` as in :meth:`write_together`, with a context for choosing hosts."""
        engine, attempts_max = self.site.engine, retry.attempts(self.site.settings)
        return await again(
            lambda: engine.decide_together(work, item, self.now), retry, attempts_max
        )

    def allows(self, rule: str, **target: Any) -> bool:
        """Return whether policy allows ``rule`` for a target with these attributes."""
        return self.site.policy.allows(rule, self.context, target)

    def demand(self, rule: str, **target: Any) -> None:
        """Raise :class:`Forbidden` if policy does not allow ``rule`` for this target."""
        self.site.policy.demand(rule, self.context, target)


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule. ``default`` is a check in oslo.policy's language.

    - ``description`` defaults to the summary of the rule's first route, or of its action.
    - ``legacy`` is an older default. The settings can keep it valid in addition to ``default``.
    - If ``needs_project_scope`` is true, system-scoped tokens are rejected, unless the settings
      allow them.
    - If ``is_for_agents`` is true, agents may use their own credentials. All other rules reject
      these credentials.
    - If ``is_about_hosts`` is true, zone parents are rejected regardless of their roles, because a
      zone shows no names of hosts to other zones.
    """

    name: str
    default: str
    description: str = ""
    legacy: str | None = None
    needs_project_scope: bool = False
    is_for_agents: bool = False
    is_about_hosts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One method of one path. ``path`` is relative to the API's prefix.

    - ``rule`` must allow the call before its body is read. If it is ``None``, the route is open,
      and needs no token.
    - ``summary`` is for the reference pages. Its default is the first paragraph of the handler's
      docstring.
    - ``body`` and ``query`` are the newest version's schemas. If there is no body schema, the body
      is ignored.
    - ``since`` and ``until`` are the first and the last version that has the route.
    - ``decode`` decodes most valid bodies faster than a validation against the schema. It returns
      ``None`` for bodies that must be validated. It is used for the newest version. If
      ``decode_since`` is set, it is also used for the versions from ``decode_since`` on.
    - ``media_types`` are the accepted types of the body.
    - If ``takes_stream`` is true, the handler gets an iterator over the body, and must not keep the
      whole body in memory.
    - ``answers`` is the media type of answers. A client that does not accept it gets a 406.
    - ``success`` has the statuses of successful answers.
    - ``body_bytes_max`` lowers the body limit of the settings, for open routes.
    - ``policy_parameters`` are query parameters that become attributes of the rule's target.
    - ``subject`` raises errors that take precedence over errors in the body.
    - ``rule_of_body`` returns the name of a second rule, which the handler checks for this body.
    - If ``is_refused_before`` is true, versions before ``since`` get a 405 instead of a 404.
    - ``is_read`` is true if the route writes nothing, although its method is not ``GET``.
    - ``new_ids`` chooses the ids of the resources that a call creates, before the call is forwarded
      to the leader. If the leader does not answer, the call is repeated with the same ids, so the
      handler must first look up resources with these ids. For a call that must not be repeated,
      ``new_ids`` returns no ids.
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
    rule_of_body: Callable[[Any], str | None] | None = None
    is_refused_before: bool = False
    is_read: bool = False
    new_ids: Callable[[Call], tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if not self.summary:
            object.__setattr__(self, "summary", summary_of(self.handler))


class TableAction(Protocol):
    """An action in an API's table of actions, with its policy rule and its handler."""

    @property
    def rule(self) -> str: ...

    @property
    def run(self) -> Callable[..., Awaitable[Answer]]: ...


def summary_of(handler: Callable[..., Any]) -> str:
    """Return the first paragraph of a handler's docstring, as one line."""
    summary, _, _ = (inspect.getdoc(handler) or "").partition("\n\n")
    return " ".join(summary.split())


def all_rules(
    routes: Iterable[Route], others: Iterable[Rule] = (), actions: Iterable[TableAction] = ()
) -> tuple[Rule, ...]:
    """Return the rules of all routes in order, followed by ``others``, which only handlers check.

    A rule without a description gets the summary of its first route or of its action.
    """
    given: dict[str, Rule] = {}
    found: dict[str, Rule] = {}
    for route in routes:
        if route.rule is not None:
            assert given.setdefault(route.rule.name, route.rule) == route.rule, "one of each name"
            found.setdefault(route.rule.name, _described(route.rule, route.summary))
    summaries = {each.rule: summary_of(each.run) for each in actions}
    for rule in others:
        assert rule.name not in found, f"one {rule.name}"
        found[rule.name] = _described(rule, summaries.get(rule.name, ""))
        assert found[rule.name].description, f"{rule.name} has a description"
    return tuple(found.values())


def _described(rule: Rule, summary: str) -> Rule:
    return rule if rule.description else replace(rule, description=summary)


@dataclass(frozen=True, slots=True)
class Api:
    """One public API, with its routes, rules and microversions, and the form of its errors.

    - ``service_type`` is its name in the service catalog, and ``service_aliases`` are further
      names there.
    - ``catalog_path``, such as ``/v3``, follows the prefix in the catalog's address.
    - ``body_refusal`` and ``query_refusal`` return the messages for schema violations.
    - If ``has_single_query_values`` is true, only the last value of a repeated query parameter is
      checked.
    - If ``takes_whole_floats`` is true, ``8.0`` in a body is accepted as ``8``.
    - If ``has_most_telling_complaints`` is true, errors report the most relevant schema violation
      instead of the first one.
    - If ``has_exact_slashes`` is true, a path with a trailing slash gets a 404.
    - If ``needs_project`` is true, tokens without a project are rejected, except those of
      administrators.
    - If ``takes_json_suffix`` is true, each path is also accepted with ``.json`` at its end.
    - If ``takes_project_in_path`` is true, each path is also accepted with the id of the caller's
      project after its first part.
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
    takes_json_suffix: bool = False
    service_aliases: tuple[str, ...] = ()
    takes_project_in_path: bool = False
