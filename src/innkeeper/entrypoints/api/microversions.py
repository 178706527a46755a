"""Microversions: requests are upgraded to the newest version, and answers downgraded.

Handlers know only the newest version. A room's ``versions/`` folder has the older ones: modules
whose ``STEPS`` are in ascending order. A microversion that changed several modules' resources has a
step in each.

Always true: a request of version V is validated against the schemas of V, then passes ``up`` of
every step after V in ascending order. Its answer passes ``down`` of the same steps in descending
order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.faults import HttpRefusal

Schema = Mapping[str, Any]
"""A JSON schema."""


def spans(since: Version | None, until: Version | None, version: Version) -> bool:
    """Whether ``version`` is from ``since`` to ``until``, both included."""
    after_first = since is None or version >= since
    return after_first and (until is None or version <= until)


SchemaBefore = Schema | Callable[[Schema], Schema]
"""The schema before a version, or a function that makes it from the following one."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What one microversion changed on one route.

    ``path`` is the route's template, or ``"*"`` for every route of the API; ``method`` may be
    ``"*"`` as well. ``body_before`` and ``query_before`` are the schemas before this version, if it
    changed them. ``up`` changes a call of the version before, and ``down`` an answer to it; their
    classes are in ``routing``, which imports this module.
    """

    method: str
    path: str
    body_before: SchemaBefore | None = None
    query_before: SchemaBefore | None = None
    up: Callable[[Any], None] | None = None
    down: Callable[[Any, Any], None] | None = None

    def touches(self, method: str, path: str) -> bool:
        """Whether the edge applies to the route."""
        return self.method in ("*", method) and self.path in ("*", path)


@dataclass(frozen=True, slots=True)
class Step:
    """What one microversion changed about one resource, with a summary for the public pages.

    A version that only added or removed routes has no edges; see ``since`` and ``until`` of routes.
    """

    version: Version
    summary: str
    edges: tuple[Edge, ...] = ()


class VersionModule(Protocol):
    """A module in a ``versions/`` folder."""

    # Read-only, so that a module's tuple matches.
    @property
    def STEPS(self) -> Sequence[Step]:
        """What each microversion changed about the module's resource, in ascending order."""


def merged(modules: Iterable[VersionModule]) -> tuple[Step, ...]:
    """Merge the steps of modules: one per version, in ascending order, without equal summaries."""
    found: dict[Version, list[Step]] = {}
    for module in modules:
        versions = [step.version for step in module.STEPS]
        assert versions == sorted(versions), f"the steps of {module} are in ascending order"
        for step in module.STEPS:
            found.setdefault(step.version, []).append(step)
    return tuple(
        Step(
            version,
            " ".join(dict.fromkeys(part.summary for part in parts)),
            tuple(edge for part in parts for edge in part.edges),
        )
        for version, parts in sorted(found.items())
    )


@dataclass(frozen=True, slots=True)
class VersionTable:
    """All microversions of one API.

    ``service_types`` are the API's names in ``OpenStack-API-Version``. ``legacy_header`` is an
    older header with the bare version. ``steps`` has one step per version, in ascending order.
    """

    service_types: tuple[str, ...]
    oldest: Version
    newest: Version
    steps: tuple[Step, ...]
    legacy_header: str | None = None

    @classmethod
    def of(
        cls,
        service_types: tuple[str, ...],
        oldest: Version,
        newest: Version,
        *modules: VersionModule,
        legacy_header: str | None = None,
    ) -> VersionTable:
        """The table of an API's modules."""
        return cls(service_types, oldest, newest, merged(modules), legacy_header)

    def __post_init__(self) -> None:
        versions = [step.version for step in self.steps]
        assert versions == sorted(set(versions)), "the steps are in ascending order"
        assert all(self.oldest < version <= self.newest for version in versions)

    def requested(self, headers: Mapping[str, str]) -> Version:
        """The version of a request; the oldest if the request names none.

        Raises :class:`HttpRefusal` with 400 for a malformed and 406 for an unknown version.
        """
        text = self._named(headers.get("openstack-api-version", ""))
        if text is None and self.legacy_header is not None:
            text = headers.get(self.legacy_header)
        if text is None:
            return self.oldest
        if text == "latest":
            return self.newest
        match = _VERSION.fullmatch(text)
        if match is None:
            raise HttpRefusal(400, f"invalid version string: {text}", is_versionless=True)
        version = Version(int(match[1]), int(match[2]))
        if not self.oldest <= version <= self.newest:
            raise HttpRefusal(
                406,
                f"Unacceptable version header: {version}",
                is_versionless=True,
                extra={"min_version": str(self.oldest), "max_version": str(self.newest)},
            )
        return version

    def _named(self, header: str) -> str | None:
        # The header may carry several services: "compute 2.1, placement 1.23".
        found = None
        for part in header.split(","):
            words = part.split(None, 1)
            if len(words) > 1 and words[0].lower() in self.service_types:
                found = words[1].strip()
        return found

    def after(self, version: Version) -> list[Step]:
        """The steps after ``version``, in ascending order."""
        return [step for step in self.steps if version < step.version]


# A number with more digits is slow to convert, and no version.
_VERSION = re.compile(r"(-?[0-9]{1,99})\.(-?[0-9]{1,99})")


@dataclass(frozen=True, slots=True)
class Passage:
    """One route's schemas at one version, and its ups and downs in their order."""

    body: Schema | None
    query: Schema | None
    ups: tuple[Callable[[Any], None], ...]
    downs: tuple[Callable[[Any, Any], None], ...]


def passage(
    steps: Iterable[Step], method: str, path: str, body: Schema | None, query: Schema | None
) -> Passage:
    """The passage of a route through the steps after a version, which are in ascending order.

    ``body`` and ``query`` are the newest schemas.
    """
    edges = [edge for step in steps for edge in step.edges if edge.touches(method, path)]
    for edge in reversed(edges):
        body = _before(edge.body_before, body)
        query = _before(edge.query_before, query)
    return Passage(
        body=body,
        query=query,
        ups=tuple(edge.up for edge in edges if edge.up is not None),
        downs=tuple(edge.down for edge in reversed(edges) if edge.down is not None),
    )


def _before(change: SchemaBefore | None, schema: Schema | None) -> Schema | None:
    if change is None:
        return schema
    if isinstance(change, Mapping):
        return change
    assert schema is not None, "the older schema is made from a newer one"
    return change(schema)
