"""What is asked of the scheduler, and what it answers.

Always true: a decision is a function of the host table, the request spec and its seed; given
the same three it comes out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from innkeeper.domain.ids import Generation, HostIndex, ProviderId


@dataclass(frozen=True, slots=True)
class Comparison:
    """A demand on one capability: its name, an operator, and what it is compared with.

    Operators are those of the field's flavor extra specs: ``=`` (at least), ``==``, ``!=``,
    ``>=``, ``<=``, ``s==`` and alike on text, ``<in>``, ``<all-in>``, ``<or>``, ``<is>``.
    """

    name: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What is asked: amounts per server, how many servers, and what their hosts must be.

    ``amounts`` are keyed by the resource class's name. ``now_s`` is the moment of asking in
    seconds; a host whose agent was silent since ``now_s - silence_max_s`` counts as down.
    """

    amounts: Mapping[str, int]
    project_id: str
    user_id: str
    now_s: float
    silence_max_s: float
    seed: int
    count: int = 1
    availability_zone: str | None = None
    forced_host: str | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    comparisons: tuple[Comparison, ...] = ()
    hints: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Removal:
    """What one filter did: how many hosts it removed, why, and what would have been needed."""

    filter_name: str
    removed: int
    reason: str
    missing: str


@dataclass(frozen=True, slots=True)
class Loan:
    """What a server takes of a pool, since its host has nothing of that class itself.

    ``index`` is the row in the table of pools.
    """

    index: HostIndex
    provider_id: ProviderId
    class_name: str
    amount: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One server's place: the row in the host table, who that is, and what pools add."""

    index: HostIndex
    provider_id: ProviderId
    host: str
    weight: float
    loans: tuple[Loan, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """One entry per server that found a place, in order, and what became of all hosts.

    ``seen`` holds, for every provider in the plan, pools included, the generation at which it
    was found to have enough; a claim proves it.
    """

    entries: tuple[Entry, ...]
    seen: Mapping[ProviderId, Generation]
    hosts: int
    candidates: int
    removals: tuple[Removal, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host that passed all filters, with its weight and what each weigher gave to it."""

    host: str
    weight: float
    parts: Mapping[str, float]
