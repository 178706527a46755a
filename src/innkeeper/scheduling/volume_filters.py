"""Filter pools for volumes on the columns of the host table.

A pool is either a shared pool or a host with its own disks. Hosts and shared pools have tables with
the same columns. Each filter is therefore applied twice: once to hosts, and once to shared pools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import Comparison
from innkeeper.scheduling import comparisons
from innkeeper.snapshot.amounts import AmountTable, Mask
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL

POOL_NAME = "volume_backend_name"
"""The capability that is the name of a pool's provider, as in Cinder."""
NONE_REMOVED = -1
PoolNames = Mapping[ProviderId, str]


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """The requirements of a volume on its pool. ``amount`` is in units of ``class_name`` (GiB).

    If ``same_pools`` is ``None``, every pool is allowed. ``now_s`` is the Unix time. ``zone`` is
    the requested zone. Without a requested zone, ``default_zone`` is preferred.
    """

    class_name: str
    amount: int
    seed: int
    now_s: float
    silence_max_s: float
    takes_hosts: bool = True
    zone: str | None = None
    default_zone: str = ""
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    comparisons: tuple[Comparison, ...] = ()
    same_pools: frozenset[ProviderId] | None = None
    different_pools: frozenset[ProviderId] = frozenset()

    @property
    def demands_names(self) -> bool:
        """Whether the choice depends on the names of pools."""
        return any(each.name == POOL_NAME for each in self.comparisons)


class Pools:
    """The pools of one kind in a decision: either the hosts with disks, or the shared pools."""

    def __init__(
        self, hosts: HostTable, spec: VolumeSpec, names: PoolNames, *, are_shared: bool
    ) -> None:
        self.hosts = hosts
        self.spec = spec
        self.names = names
        self.table: AmountTable = hosts.pools if are_shared else hosts
        self.are_shared = are_shared
        name, count = spec.class_name, self.table.row_count
        self.alive: Mask = np.zeros(count, dtype=np.bool_)
        if name in self.table.max_units and (are_shared or spec.takes_hosts):
            self.alive = self.table.max_units[name] > 0
        self.is_any_left = bool(self.alive.any())
        self.removed_by = np.full(count, NONE_REMOVED, dtype=np.int16)
        self.is_candidate = self.alive.copy()
        self.candidate_count = int(np.count_nonzero(self.is_candidate))

    def again(self, spec: VolumeSpec, names: PoolNames) -> Pools:
        """Return a copy for another volume with the same demands."""
        other = copy(self)
        other.spec, other.names = spec, names
        other.alive, other.removed_by = self.alive.copy(), self.removed_by.copy()
        return other

    def served(self, row: int) -> Mask:
        """Return the enabled hosts with a live agent that a shared pool serves."""
        return self.hosts.served_by([row]) & _up(self.hosts, self.spec)

    def reached_by(self, chosen: Mask) -> Mask:
        """Return the shared pools that serve at least one of these hosts."""
        codes: Mask = np.zeros(self.hosts.pools.code_count, dtype=np.bool_)
        codes[self.hosts.membership_codes[chosen]] = True
        return self.hosts.pools.lending(self.spec.class_name, codes)

    def name(self, row: int) -> str:
        """Return the name of a pool's provider."""
        if not self.are_shared:
            return self.hosts.names[row]
        return self.names.get(ProviderId(int(self.table.provider_ids[row])), "")


def _up(hosts: HostTable, spec: VolumeSpec) -> Mask:
    is_heard = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    up: Mask = hosts.is_open & is_heard[hosts.agent_codes]
    return up


def _all(pools: Pools) -> Mask:
    return np.ones(pools.table.row_count, dtype=np.bool_)


def _are_up(pools: Pools) -> Mask:
    up = _up(pools.hosts, pools.spec)
    return pools.reached_by(up) if pools.are_shared else up


def _are_general(pools: Pools) -> Mask:
    if pools.are_shared:
        return _all(pools)
    general: Mask = pools.hosts.dedication_codes == GENERAL
    return general


def _are_in_zone(pools: Pools) -> Mask:
    zone, hosts = pools.spec.zone, pools.hosts
    if zone is None:
        return _all(pools)
    there: Mask = hosts.zone_codes == hosts.zones.get(zone, -1)
    return pools.reached_by(there & _up(hosts, pools.spec)) if pools.are_shared else there


def _have_traits(pools: Pools) -> Mask:
    found = _all(pools)
    nowhere: Mask = np.zeros(pools.table.row_count, dtype=np.bool_)
    for name in pools.spec.required_traits:
        found &= pools.table.traits.get(name, nowhere)
    for name in pools.spec.forbidden_traits:
        found &= ~pools.table.traits.get(name, nowhere)
    return found


def _have_capabilities(pools: Pools) -> Mask:
    found = _all(pools)
    for each in pools.spec.comparisons:
        if each.name == POOL_NAME:
            for row in np.flatnonzero(found & pools.alive).tolist():
                found[row] = comparisons.meets(pools.name(row), each)
        elif pools.are_shared:
            found &= False
        else:
            found &= comparisons.mask(pools.hosts.capability(each.name), each, slice(None))
    return found


def _are_where_asked(pools: Pools) -> Mask:
    found = _all(pools)
    spec = pools.spec
    if spec.same_pools is not None:
        found &= np.isin(pools.table.provider_ids, list(spec.same_pools))
    if spec.different_pools:
        found &= ~np.isin(pools.table.provider_ids, list(spec.different_pools))
    return found


def _have_room(pools: Pools) -> Mask:
    table, name, amount = pools.table, pools.spec.class_name, pools.spec.amount
    if name not in table.free:
        return np.zeros(table.row_count, dtype=np.bool_)
    room: Mask = table.free[name] >= amount
    given = table.gives(name, amount, slice(None))
    return room if given is None else room & given


STEADY_FILTERS: tuple[tuple[str, str, Callable[[Pools], Mask]], ...] = (
    ("PoolUpFilter", "no enabled host with a live agent can reach the pool", _are_up),
    ("PoolDedicationFilter", "the pool is the disk of a dedicated host", _are_general),
    ("PoolAvailabilityZoneFilter", "the pool is in another availability zone", _are_in_zone),
    ("PoolTraitsFilter", "the traits of the pool do not match the volume type", _have_traits),
    (
        "PoolCapabilitiesFilter",
        "the capabilities of the pool do not match the volume type",
        _have_capabilities,
    ),
    (
        "PoolAffinityFilter",
        "the request excludes the pool, or asks for the pool of another volume",
        _are_where_asked,
    ),
)
"""The filters that read no amounts, in order, as tuples of name, reason and mask."""
FILTERS = (
    *STEADY_FILTERS,
    ("PoolCapacityFilter", "the pool has too little free capacity", _have_room),
)
"""All filters in order. The last one reads the free amounts and the size of the volume."""
