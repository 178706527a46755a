"""Types of requests to the scheduler, and of the build plans that it returns.

Always true: a decision is a pure function of the host table and the request spec. The request spec
contains the seed of the random choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from innkeeper.domain.ids import Generation, HostIndex, ProviderId


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one capability: its name, an operator, and the operands.

    The operators are from Nova's flavor extra specs: ``=`` (at least), ``==``, ``!=``, ``>=``,
    ``<=``, ``s==`` and other text operators, ``<in>``, ``<all-in>``, ``<or>``, ``<is>``.
    """

    name: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of filters and weighers, which are the same for all requests.

    Reported capabilities older than ``capabilities_max_age_s`` count as unknown.
    ``capability_multipliers`` are pairs of a capability's name and its multiplier. Preemptible
    servers may use hosts that no lease needs within the next ``preemptible_reach_s`` seconds. If
    ``preemptible_reach_s`` is ``None``, no server is preemptible.
    """

    servers_per_host_max: int = 50
    busy_servers_per_host_max: int = 8
    isolated_images: frozenset[str] = frozenset()
    isolated_hosts: frozenset[str] = frozenset()
    isolated_hosts_take_isolated_images_only: bool = True
    isolates_aggregates_by_trait: bool = True
    capabilities_max_age_s: float = float("inf")
    capability_multipliers: tuple[tuple[str, float], ...] = ()
    preemptible_reach_s: float | None = None


class GroupPolicy:
    """Policies of server groups, as the Compute API spells them."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"
    ALL = (AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY)


@dataclass(frozen=True, slots=True)
class GroupRule:
    """A server group in a request spec: its policy, and the number of members by host.

    ``members`` does not count the servers of this request. The scheduler counts them while it picks
    hosts. ``servers_per_host_max`` applies only to anti-affinity. ``is_moving`` says that a member
    is migrating, and may end up on either of two hosts. ``is_elsewhere`` says that the group has
    members, but only in other zones. In this case, affinity allows no host of this zone.
    """

    policy: str
    members: Mapping[str, int] = field(default_factory=dict)
    servers_per_host_max: int = 1
    is_moving: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """A range of IP addresses that must contain the host's address. ``version`` is 4 or 6."""

    version: int
    address: int
    prefix: int


Expression = tuple[Any, ...]
"""A parsed query of the JSON filter, see :mod:`innkeeper.scheduling.expressions`."""


class RequestSpec(msgspec.Struct, frozen=True):
    """A request: amounts per server, the number of servers, and conditions on their hosts.

    ``amounts`` are keyed by resource class. ``now_s`` is the time of the request in seconds. A host
    is down if its agent was last seen before ``now_s - silence_max_s``. ``flavor_specs`` are the
    flavor's unparsed extra specs. Some filters compare these with aggregate metadata. ``turn`` is
    the number of the first random draw. A caller can request servers one by one and increment
    ``turn`` each time. The servers then get the same hosts as with one request for all of them.

    Hosts are given by name. ``same_hosts`` are the hosts of the servers in the hint ``same_host``,
    and ``different_hosts`` those of the servers in the hint ``different_host``. Without a
    ``same_host`` hint, ``same_hosts`` is ``None``. ``refused_hosts`` are excluded, because the
    server is already on such a host, or its build failed there.

    ``pclouds`` are the ids of the acceptable pclouds, and ``pcloud_host`` is the name of a host in
    one of them. A request for new servers without ``pclouds`` may also use the hosts of the
    ``automatic_pclouds``. ``reservation`` is the id of the reservation whose hosts the servers must
    use. ``takes_slot`` says that the amounts include a slot of a reservation. A server that
    ``is_preemptible`` uses the freepool only.

    With ``has_fixed_scales``, the weight of a host does not depend on the other hosts of the zone.
    These weights can therefore be compared with the weights of hosts in other zones.

    ``volume_pools`` are the pools of the server's volumes, which the host must reach.
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
    hints: Mapping[str, object] = msgspec.field(default_factory=dict)
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
    takes_slot: bool = False
    is_preemptible: bool = False
    has_fixed_scales: bool = False
    volume_pools: frozenset[ProviderId] = frozenset()

    @property
    def names_dedicated(self) -> bool:
        """Whether only hosts of a pcloud, of a reservation or of the freepool are acceptable."""
        return bool(self.pclouds) or self.uses_leased

    @property
    def uses_leased(self) -> bool:
        """Whether only hosts that are kept for leases are acceptable."""
        return self.reservation is not None or self.takes_slot or self.is_preemptible

    @property
    def unneeded_until_s(self) -> float:
        """The earliest time at which a lease may need the host of a preemptible server.

        If a lease needs a host before this time, no preemptible server is placed on the host.
        """
        return self.now_s + (self.rules.preemptible_reach_s or 0.0)


class Removal(msgspec.Struct, frozen=True):
    """The result of one filter: how many hosts it removed, why, and what these hosts lacked.

    ``missing`` describes what the hosts lack. ``counted`` is the same text with numbers of hosts,
    for administrators.
    """

    filter_name: str
    removed: int
    reason: str
    missing: str
    counted: str


class Loan(msgspec.Struct, frozen=True):
    """An amount that a server takes from a pool, because its host has no capacity of this class.

    ``index`` is the pool's row in the pool table.
    """

    index: HostIndex
    provider_id: ProviderId
    class_name: str
    amount: int


class Entry(msgspec.Struct, frozen=True):
    """The host of one server, and the server's loans from pools. ``index`` is the row of the host.

    ``alternates`` are the next best hosts, in order. They are tried if the build on this host
    fails. ``parts`` has each weigher's part of the weight, if parts were requested.
    """

    index: HostIndex
    provider_id: ProviderId
    host: str
    weight: float
    loans: tuple[Loan, ...] = ()
    alternates: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None


class BuildPlan(msgspec.Struct, frozen=True):
    """The scheduler's decision: one entry per placed server, in the order of the request.

    ``hosts`` counts all hosts, and ``candidates`` the hosts that passed all filters for the first
    server. ``seen`` has the generation at which each provider of the plan, including pools, had
    enough capacity. A claim of the plan fails if a provider is no longer at this generation.
    """

    entries: tuple[Entry, ...]
    seen: Mapping[ProviderId, Generation]
    hosts: int
    candidates: int
    removals: tuple[Removal, ...]
