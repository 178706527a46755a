"""Words of explanations: what became of all hosts, how near the rest came, and who decided.

Always true: hosts are named in the fields ``host`` and ``alternates`` and nowhere else; whoever
may not read names is shown all but these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deciders:
    """What made a decision: given the same and the same table, it comes out the same.

    ``weighers`` are named with their multipliers.
    """

    driver: str
    filters: tuple[str, ...]
    weighers: tuple[tuple[str, float], ...]
    subset_size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What one filter did to all hosts.

    ``removed`` of those that the filters before it had left; ``refused`` of all; and
    ``alone``: so many hosts would pass if this one filter were left out, since no other
    refuses them. ``counted`` is ``missing`` with numbers of hosts, for administrators.
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
    """Why one filter refuses one host, and what that host lacks, as far as one can say."""

    filter_name: str
    reason: str
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A host that is refused, and by whom. ``shortage`` is how much of the amounts is missing
    there: 0.25 is a quarter of one of them."""

    host: str
    objections: tuple[Objection, ...]
    shortage: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one filter says of one host; ``is_asked`` is whether the request asks anything of
    the kind."""

    filter_name: str
    is_asked: bool
    objection: Objection | None


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What became of one host: every filter's verdict, and its place among the candidates.

    ``rank`` counts from 1, over those of greater weight; it, ``weight`` and ``parts`` are of
    a host that no filter refuses.
    """

    host: str
    verdicts: tuple[Verdict, ...]
    rank: int | None = None
    weight: float | None = None
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The place of one server: what its host weighed when it was picked, and by weigher.

    ``pools`` are those that lend to it, by class; ``alternates`` come next if the host fails.
    """

    host: str
    weight: float
    parts: Mapping[str, float]
    pools: Mapping[str, str]
    alternates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A host that passed all filters, with its weight and what each weigher gave to it."""

    host: str
    weight: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where servers would go, or why nowhere.

    ``tallies`` and ``nearest`` are of the moment at which the first server was looked for.
    Where only some of several find a place, ``then`` has the same for the first that does not,
    with the places of those before it taken. ``has_dedicated`` says that some hosts are kept
    for somebody. ``unread`` has hints of which nothing is known, and what is said of each.
    ``counted_fault`` is ``fault`` with numbers of hosts, for administrators.
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
    """Why no host takes a server."""

    tallies: tuple[Tally, ...]
    nearest: tuple[NearMiss, ...]
