"""Types for explanations of scheduling decisions.

Always true: only the fields ``host`` and ``alternates`` contain names of hosts. Callers that may
not see these names get all other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deciders:
    """The configuration and seed that, together with the host table, determine a decision.

    ``weighers`` are pairs of a name and a multiplier.
    """

    driver: str
    filters: tuple[str, ...]
    weighers: tuple[tuple[str, float], ...]
    subset_size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of hosts that one filter rejects.

    ``refused`` counts all hosts that the filter rejects. ``removed`` counts only those that passed
    all earlier filters. ``alone`` counts only those that no other filter rejects. ``missing``
    describes in words what the hosts lack. ``counted`` is the same text with numbers of hosts, for
    administrators.
    """

    filter_name: str
    removed: int
    refused: int
    alone: int
    reason: str
    missing: str
    counted: str


@dataclass(frozen=True, slots=True)
class Objection:
    """The reason why one filter rejects one host, and (if known) what the host lacks."""

    filter_name: str
    reason: str
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rejected host, with the filters that reject the host.

    ``shortage`` is the sum of the missing fractions of all requested amounts. For example, it is
    0.25 if the host lacks a quarter of one amount and nothing else.
    """

    host: str
    objections: tuple[Objection, ...]
    shortage: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one filter for one host.

    ``is_requested`` tells whether the request uses the filter.
    """

    filter_name: str
    is_requested: bool
    objection: Objection | None


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The result for one host: the verdict of every filter, and its rank among the candidates.

    ``rank`` counts from 1. ``rank``, ``weight`` and ``parts`` are set only if no filter rejects the
    host.
    """

    host: str
    verdicts: tuple[Verdict, ...]
    rank: int | None = None
    weight: float | None = None
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The host that was picked for one server.

    ``weight`` is the weight of the host when it was picked. ``parts`` has the share of each weigher
    in this weight. ``pools`` maps each borrowed resource class to the pool that lends it.
    ``alternates`` are the hosts to try if the build fails.
    """

    host: str
    weight: float
    parts: Mapping[str, float]
    pools: Mapping[str, str]
    alternates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A host that passed all filters, with its weight and each weigher's part of the weight."""

    host: str
    weight: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The hosts that the servers would get, or the reasons why the servers get no host.

    ``tallies`` and ``nearest`` describe the search for the first server. If only some servers get a
    host, ``then`` describes the search for the first server without a host. ``has_dedicated`` tells
    whether the cloud has dedicated hosts. ``unread`` maps each ignored scheduler hint to the reason
    why it was ignored. ``counted_fault`` is ``fault`` for administrators: it also
    says how many hosts each filter removed.
    """

    hosts: int
    candidates: int
    wanted: int
    placed: int
    deciders: Deciders
    tallies: tuple[Tally, ...]
    nearest: tuple[NearMiss, ...]
    best: tuple[Ranked, ...]
    chosen: tuple[Chosen, ...]
    then: Refused | None = None
    host: HostAnswer | None = None
    fault: str | None = None
    counted_fault: str | None = None
    has_dedicated: bool = False
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """The reasons why no host was found for a server."""

    tallies: tuple[Tally, ...]
    nearest: tuple[NearMiss, ...]
