"""What is asked of the scheduler, and what it answers.

Always true: a decision is a function of the host table, the request spec and its seed; given
the same three it comes out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
class Rules:
    """What filters and weighers are told by the settings; alike for all requests.

    ``capabilities_max_age_s`` is after how long what an agent reported counts as unknown.
    ``capability_multipliers`` weigh capabilities by their names.
    """

    servers_per_host_max: int = 50
    busy_servers_per_host_max: int = 8
    isolated_images: frozenset[str] = frozenset()
    isolated_hosts: frozenset[str] = frozenset()
    isolated_hosts_take_isolated_images_only: bool = True
    isolates_aggregates_by_trait: bool = True
    capabilities_max_age_s: float = float("inf")
    capability_multipliers: tuple[tuple[str, float], ...] = ()


class GroupPolicy:
    """How the servers of a group relate, as the Compute API spells it."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"


@dataclass(frozen=True, slots=True)
class GroupRule:
    """A server group as a decision needs it: its policy, and how many members are where.

    ``members`` are counted by host; those that this very request adds are not among them, the
    scheduler counts them as it picks. ``servers_per_host_max`` is for anti-affinity alone.
    ``is_moving`` says that a member is between two hosts, and may end up on either.
    """

    policy: str
    members: Mapping[str, int] = field(default_factory=dict)
    servers_per_host_max: int = 1
    is_moving: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """A range of addresses: where hosts must be. ``version`` is 4 or 6."""

    version: int
    address: int
    prefix: int


Expression = tuple[Any, ...]
"""A query of the JSON filter, parsed: see :mod:`innkeeper.scheduling.expressions`."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What is asked: amounts per server, how many servers, and what their hosts must be.

    ``amounts`` are keyed by the resource class's name. ``now_s`` is the moment of asking in
    seconds; a host whose agent was silent since ``now_s - silence_max_s`` counts as down.
    ``flavor_specs`` are the flavor's extra specs as they are, for filters that compare them
    with the metadata of aggregates. ``turn`` is where the draws of this decision begin: a
    request that is decided one by one counts it up, and comes out as all at once.

    Hosts are named: ``same_hosts`` are where the servers of the hint of that name are (``None``
    if there is no such hint), ``different_hosts`` likewise; ``refused_hosts`` are those that
    are out of the question for another reason: the server is there already, or failed there.

    ``pclouds`` are those of which one is wanted, by their ids, and ``pcloud_host`` the name of
    a host in it. A request for new servers that names none may also come to hosts of the
    ``automatic_pclouds``, which take such requests of its project. ``reservation`` is the one
    on whose hosts it is to be, by its id.
    """

    amounts: Mapping[str, int]
    project_id: str
    user_id: str
    now_s: float
    silence_max_s: float
    seed: int
    count: int = 1
    turn: int = 0
    availability_zone: str | None = None
    forced_host: str | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    comparisons: tuple[Comparison, ...] = ()
    hints: Mapping[str, object] = field(default_factory=dict)
    flavor_specs: tuple[tuple[str, str], ...] = ()
    image_id: str | None = None
    image_properties: tuple[tuple[str, str], ...] = ()
    group: GroupRule | None = None
    same_hosts: frozenset[str] | None = None
    different_hosts: frozenset[str] = frozenset()
    refused_hosts: frozenset[str] = frozenset()
    near: Network | None = None
    query: Expression | None = None
    rules: Rules = Rules()
    preferred_traits: frozenset[str] = frozenset()
    pclouds: tuple[str, ...] = ()
    pcloud_host: str | None = None
    automatic_pclouds: tuple[str, ...] = ()
    reservation: str | None = None

    @property
    def names_dedicated(self) -> bool:
        """Whether hosts of a pcloud or of a reservation are wanted, and no others."""
        return bool(self.pclouds) or self.reservation is not None


@dataclass(frozen=True, slots=True)
class Removal:
    """What one filter did: how many hosts it removed, why, and what would have been needed.

    ``counted`` is ``missing`` with numbers of hosts, for administrators.
    """

    filter_name: str
    removed: int
    reason: str
    missing: str
    counted: str


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
    alternates: tuple[str, ...] = ()
    """Hosts that are next best, in order, for when this one fails."""
    parts: Mapping[str, float] | None = None
    """What each weigher gave to the host when it was picked, where that was asked for."""


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
