"""Upgrades requests to the newest microversion, and downgrades answers to the requested version.

Handlers know only the newest version. The folder ``versions/`` of an API describes the older
versions, in modules whose ``STEPS`` are in ascending order. If a microversion changed the resources
of several modules, each of these modules has a step for it.

Always true: a request of version V is validated against the schemas of V. Then the ``up`` functions
of all steps after V change the request, in ascending order. The ``down`` functions of the same
steps change its answer, in descending order.
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
    """Return whether ``version`` is between ``since`` and ``until``, both inclusive."""
    after_first = since is None or version >= since
    return after_first and (until is None or version <= until)


SchemaBefore = Schema | Callable[[Schema], Schema]
"""The schema before a version, or a function that makes this older schema from the version's own
schema."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Describes the changes of one microversion to one route.

    ``path`` is the route's template, or ``"*"`` for every route of the API. ``method`` may be
    ``"*"``, too. If the microversion changed a schema, ``body_before`` or ``query_before`` has the
    schema before the change. ``up`` upgrades a call from the previous version, and ``down``
    downgrades an answer to the previous version. Calls and answers have the type ``Any``, because
    ``routing``, which defines them, imports this module.
    """

    method: str
    path: str
    body_before: SchemaBefore | None = None
    query_before: SchemaBefore | None = None
    up: Callable[[Any], None] | None = None
    down: Callable[[Any, Any], None] | None = None

    def touches(self, method: str, path: str) -> bool:
        """Return whether the edge applies to the route."""
        return self.method in ("*", method) and self.path in ("*", path)


@dataclass(frozen=True, slots=True)
class Step:
    """Describes the changes of one microversion to one resource.

    The summary is for the reference pages.

    A version that only added or removed routes has no edges. The fields ``since`` and ``until`` of
    the routes express such a change.
    """

    version: Version
    summary: str
    edges: tuple[Edge, ...] = ()


class VersionModule(Protocol):
    """A module in a ``versions/`` folder."""

    # The property is read-only, so that a module's tuple matches the protocol.
    @property
    def STEPS(self) -> Sequence[Step]:
        """The steps of the module's resource, in ascending order of their versions."""


def merged(modules: Iterable[VersionModule]) -> tuple[Step, ...]:
    """Merge the steps of modules into one step per version, in ascending order.

    If several steps of a version have the same summary, it appears once.
    """
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
    older header, which contains the version number alone. ``steps`` has one step per version, in
    ascending order.
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
        """Build the table from an API's modules."""
        return cls(service_types, oldest, newest, merged(modules), legacy_header)

    def __post_init__(self) -> None:
        versions = [step.version for step in self.steps]
        assert versions == sorted(set(versions)), "the steps are in ascending order"
        assert all(self.oldest < version <= self.newest for version in versions)

    def requested(self, headers: Mapping[str, str]) -> Version:
        """Return the version that a request names. The default is the oldest version.

        Raises :class:`HttpRefusal` with 400 for a malformed version, and with 406 for an
        unsupported one.
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

    def headers(self, version: Version) -> Mapping[str, str]:
        """Return the headers of answers at this version."""
        found = {"openstack-api-version": f"{self.service_types[0]} {version}"}
        vary = "openstack-api-version"
        if self.legacy_header is not None:
            found[self.legacy_header] = str(version)
            vary = f"{vary}, {self.legacy_header}"
        return {**found, "vary": vary}

    def _named(self, header: str) -> str | None:
        # The header may name several services: "compute 2.1, placement 1.23".
        found = None
        for part in header.split(","):
            words = part.split(None, 1)
            if len(words) > 1 and words[0].lower() in self.service_types:
                found = words[1].strip()
        return found

    def after(self, version: Version) -> list[Step]:
        """Return the steps after ``version``, in ascending order."""
        return [step for step in self.steps if version < step.version]


# A number with more digits is slow to convert, and is never a version.
_VERSION = re.compile(r"(-?[0-9]{1,99})\.(-?[0-9]{1,99})")


@dataclass(frozen=True, slots=True)
class Passage:
    """A route's schemas at one version, and its upgrades and downgrades in order of use."""

    body: Schema | None
    query: Schema | None
    ups: tuple[Callable[[Any], None], ...]
    downs: tuple[Callable[[Any, Any], None], ...]


def passage(
    steps: Iterable[Step], method: str, path: str, body: Schema | None, query: Schema | None
) -> Passage:
    """Collect a route's schemas and changes from the steps after a version.

    ``steps`` are in ascending order. ``body`` and ``query`` are the newest schemas.
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
