"""Microversions: requests up to the newest version, answers back down.

Handlers know the newest version only. Each older one is told by the steps in a room's
``versions/`` folder: one module per microversion that changed something, with

- ``VERSION`` and ``SUMMARY``,
- ``EDGES``: for each route it touched, what was in force *before* it (schemas), how a request
  of that time is brought up, and how an answer of today is taken down.

Always true: a request of version V is checked against the schemas of V, then passes ``up`` of
every step after V in ascending order; its answer passes ``down`` of the same steps in
descending order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from innkeeper.entrypoints.api.faults import HttpRefusal

Schema = Mapping[str, Any]
"""A JSON schema."""


class Version(NamedTuple):
    """A microversion; compares as numbers do, so 1.10 is after 1.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def spans(since: Version | None, until: Version | None, version: Version) -> bool:
    """Whether something that was there ``since`` one version ``until`` another has this one."""
    after_first = since is None or version >= since
    return after_first and (until is None or version <= until)


@dataclass(frozen=True, slots=True)
class Edge:
    """What one microversion changed on one route.

    ``path`` is the route's template, or ``"*"`` for every route of the API; ``method`` may be
    ``"*"`` as well. ``body_before`` and ``query_before`` are the schemas in force until this
    version, where it changed them. ``up`` gets the call, ``down`` the answer and the call; see
    ``routing``, which is not imported here, since it needs this module.
    """

    method: str
    path: str
    body_before: Schema | None = None
    query_before: Schema | None = None
    up: Callable[[Any], None] | None = None
    down: Callable[[Any, Any], None] | None = None

    def touches(self, method: str, path: str) -> bool:
        """Whether this edge is about the route."""
        return self.method in ("*", method) and self.path in ("*", path)


class VersionModule(Protocol):
    """A module in a ``versions/`` folder."""

    # Properties, because nothing of them is assigned: a module's tuple of edges then fits.
    @property
    def VERSION(self) -> Version:
        """The microversion that brought the change."""

    @property
    def SUMMARY(self) -> str:
        """The change, in one sentence."""

    @property
    def EDGES(self) -> Sequence[Edge]:
        """What was otherwise before, route by route."""


@dataclass(frozen=True, slots=True)
class VersionTable:
    """All microversions of one API.

    ``service_types`` are the words that name this API in ``OpenStack-API-Version``;
    ``legacy_header`` is an older header that carries the bare version, if there is one.
    """

    service_types: tuple[str, ...]
    oldest: Version
    newest: Version
    steps: tuple[VersionModule, ...]
    legacy_header: str | None = None

    def __post_init__(self) -> None:
        versions = [step.VERSION for step in self.steps]
        assert versions == sorted(set(versions)), "the steps are in ascending order"
        assert all(self.oldest < version <= self.newest for version in versions)

    def wanted(self, headers: Mapping[str, str]) -> Version:
        """Find the version a request asks for; without any it is the oldest.

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

    def after(self, version: Version) -> list[VersionModule]:
        """The steps between ``version`` and the newest, ascending."""
        return [step for step in self.steps if version < step.VERSION]


# A number with more digits costs time to convert, and is no version of anything.
_VERSION = re.compile(r"(-?[0-9]{1,99})\.(-?[0-9]{1,99})")


@dataclass(frozen=True, slots=True)
class Passage:
    """The way of one route's requests at one version: schemas, ups and downs, in order."""

    body: Schema | None
    query: Schema | None
    ups: tuple[Callable[[Any], None], ...]
    downs: tuple[Callable[[Any, Any], None], ...]


def passage(
    steps: Iterable[VersionModule],
    method: str,
    path: str,
    body: Schema | None,
    query: Schema | None,
) -> Passage:
    """Work out a route's passage from the steps after a version, ascending.

    ``body`` and ``query`` are the newest schemas; the first step that tells of an earlier one
    decides, because it was in force until then.
    """
    edges = [edge for step in steps for edge in step.EDGES if edge.touches(method, path)]
    bodies = [edge.body_before for edge in edges if edge.body_before is not None]
    queries = [edge.query_before for edge in edges if edge.query_before is not None]
    return Passage(
        body=bodies[0] if bodies else body,
        query=queries[0] if queries else query,
        ups=tuple(edge.up for edge in edges if edge.up is not None),
        downs=tuple(edge.down for edge in reversed(edges) if edge.down is not None),
    )
