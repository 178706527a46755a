"""Choose a pool for a volume: filters and a weigher on the columns of the host table.

A pool is a shared pool, or a host with disks of its own. Both are rows of a table with the same
columns, so each filter is one mask over hosts and one over shared pools.

Always true: the choice depends only on the table, the spec and its seed. Each filter is counted by
the pools that it is the first to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import Generation, HostIndex, ProviderId
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
    """What a pool must have for a volume. ``amount`` is in units of ``class_name``, which are GiB.

    ``same_pools`` is ``None`` if any pool will do. ``now_s`` is the Unix time. ``zone`` is the
    requested zone, and ``default_zone`` is preferred without one.
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
        """Whether the names of pools decide."""
        return any(each.name == POOL_NAME for each in self.comparisons)


class PoolTally(NamedTuple):
    """How many pools a filter removed."""

    name: str
    reason: str
    removed: int


class PoolRefusal(NamedTuple):
    """A pool, and the filter that removed it first."""

    provider_id: ProviderId
    pool: str
    filter_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlacedVolume:
    """The chosen pool at its generation, its zone, and the host whose agent carries out orders."""

    provider_id: ProviderId
    generation: Generation
    name: str
    zone: str
    host: str
    free: int


@dataclass(frozen=True, slots=True)
class VolumeDecision:
    """The result of a choice. ``most_free`` is the largest free amount of one pool."""

    placed: PlacedVolume | None
    considered: int
    tallies: tuple[PoolTally, ...]
    refusals: tuple[PoolRefusal, ...]
    most_free: int


class _Pools:
    """The hosts with disks, or the shared pools, of one decision."""

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

    def again(self, spec: VolumeSpec, names: PoolNames) -> _Pools:
        """Return a copy for another volume with the same demands."""
        other = copy(self)
        other.spec, other.names = spec, names
        other.alive, other.removed_by = self.alive.copy(), self.removed_by.copy()
        return other

    def served(self, row: int) -> Mask:
        """Return the hosts that a shared pool serves and whose agents can work."""
        return self.hosts.served_by([row]) & _up(self.hosts, self.spec)

    def reached_by(self, chosen: Mask) -> Mask:
        """Return the shared pools that serve one of these hosts."""
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


def _all(pools: _Pools) -> Mask:
    return np.ones(pools.table.row_count, dtype=np.bool_)


def _are_up(pools: _Pools) -> Mask:
    up = _up(pools.hosts, pools.spec)
    return pools.reached_by(up) if pools.are_shared else up


def _are_general(pools: _Pools) -> Mask:
    if pools.are_shared:
        return _all(pools)
    general: Mask = pools.hosts.dedication_codes == GENERAL
    return general


def _are_in_zone(pools: _Pools) -> Mask:
    zone, hosts = pools.spec.zone, pools.hosts
    if zone is None:
        return _all(pools)
    there: Mask = hosts.zone_codes == hosts.zones.get(zone, -1)
    return pools.reached_by(there & _up(hosts, pools.spec)) if pools.are_shared else there


def _have_traits(pools: _Pools) -> Mask:
    found = _all(pools)
    nowhere: Mask = np.zeros(pools.table.row_count, dtype=np.bool_)
    for name in pools.spec.required_traits:
        found &= pools.table.traits.get(name, nowhere)
    for name in pools.spec.forbidden_traits:
        found &= ~pools.table.traits.get(name, nowhere)
    return found


def _have_capabilities(pools: _Pools) -> Mask:
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


def _are_where_asked(pools: _Pools) -> Mask:
    found = _all(pools)
    spec = pools.spec
    if spec.same_pools is not None:
        found &= np.isin(pools.table.provider_ids, list(spec.same_pools))
    if spec.different_pools:
        found &= ~np.isin(pools.table.provider_ids, list(spec.different_pools))
    return found


def _have_room(pools: _Pools) -> Mask:
    table, name, amount = pools.table, pools.spec.class_name, pools.spec.amount
    if name not in table.free:
        return np.zeros(table.row_count, dtype=np.bool_)
    room: Mask = table.free[name] >= amount
    given = table.gives(name, amount, slice(None))
    return room if given is None else room & given


STEADY_FILTERS: tuple[tuple[str, str, Callable[[_Pools], Mask]], ...] = (
    ("PoolUpFilter", "no enabled host with a live agent can reach the pool", _are_up),
    ("PoolDedicationFilter", "the pool is the disk of a dedicated host", _are_general),
    ("PoolAvailabilityZoneFilter", "the pool is in another availability zone", _are_in_zone),
    ("PoolTraitsFilter", "the pool has not the traits of the volume type", _have_traits),
    (
        "PoolCapabilitiesFilter",
        "the pool has not the capabilities of the volume type",
        _have_capabilities,
    ),
    (
        "PoolAffinityFilter",
        "the pool of another volume was asked for, or excluded",
        _are_where_asked,
    ),
)
"""The filters that read no amounts, in order: name, reason, and mask."""
FILTERS = (
    *STEADY_FILTERS,
    ("PoolCapacityFilter", "the pool has too little free capacity", _have_room),
)
"""All filters in order. The last one reads the free amounts and the size of the volume."""


class PoolChooser:
    """Chooses pools for volumes on one host table. Between the choices, only amounts may change.

    Always true: the filters that read no amounts run once for all volumes with the same demands.
    """

    def __init__(self, hosts: HostTable) -> None:
        self._hosts = hosts
        self._kept: dict[VolumeSpec, tuple[list[_Pools], list[PoolTally]]] = {}

    def choose(
        self, spec: VolumeSpec, names: PoolNames, *, refusals_max: int = 0
    ) -> VolumeDecision:
        """Choose the pool with the largest free amount.

        ``names`` has the names of all shared pools if the spec :attr:`~VolumeSpec.demands_names`.
        Names of shared pools that are not in it are empty in the decision, see :func:`with_names`.
        ``refusals_max`` limits the refused pools that are returned.
        """
        demands = replace(spec, amount=0, seed=0)
        if demands not in self._kept:
            fresh = [_Pools(self._hosts, spec, names, are_shared=each) for each in (False, True)]
            self._kept[demands] = (fresh, [_run(fresh, i) for i in range(len(STEADY_FILTERS))])
        steady, tallies = self._kept[demands]
        both = [pools.again(spec, names) for pools in steady]
        last = _run(both, len(STEADY_FILTERS))
        return VolumeDecision(
            _best(both, spec),
            sum(pools.candidate_count for pools in both),
            (*tallies, last),
            tuple(refused(both, refusals_max)),
            max(_most_free(pools) for pools in both),
        )


def choose(
    hosts: HostTable, spec: VolumeSpec, names: PoolNames, *, refusals_max: int = 0
) -> VolumeDecision:
    """Choose a pool for one volume, see :meth:`PoolChooser.choose`."""
    return PoolChooser(hosts).choose(spec, names, refusals_max=refusals_max)


def _run(both: list[_Pools], number: int) -> PoolTally:
    """Run a filter on the pools that are left, and count what it removes."""
    name, reason, judge = FILTERS[number]
    removed = 0
    for pools in both:
        if not pools.is_any_left:
            continue
        lost = pools.alive & ~judge(pools)
        count = int(np.count_nonzero(lost))
        if count:
            pools.removed_by[lost] = number
            pools.alive &= ~lost
            pools.is_any_left = bool(pools.alive.any())
        removed += count
    return PoolTally(name, reason, removed)


def refused(both: list[_Pools], most: int) -> list[PoolRefusal]:
    """Return the refused pools, shared pools first."""
    found: list[PoolRefusal] = []
    for pools in reversed(both):
        rows = np.flatnonzero(pools.removed_by != NONE_REMOVED)[: max(0, most - len(found))]
        for row in rows.tolist():
            name, reason, _ = FILTERS[int(pools.removed_by[row])]
            provider_id = ProviderId(int(pools.table.provider_ids[row]))
            found.append(PoolRefusal(provider_id, pools.name(row), name, reason))
    return found


def _most_free(pools: _Pools) -> int:
    free = pools.table.free.get(pools.spec.class_name)
    if free is None or not pools.candidate_count:
        return 0
    return int(free[pools.is_candidate].max(initial=0.0))


def _best(both: list[_Pools], spec: VolumeSpec) -> PlacedVolume | None:
    best = max((_greatest(pools) for pools in both), default=-1.0)
    if best < 0:
        return None
    ties = [_rows_with(pools, best) for pools in both]
    ids = np.concatenate([p.table.provider_ids[rows] for p, rows in zip(both, ties, strict=True)])
    # By id, because rows move when others are removed.
    chosen = np.sort(ids)[spec.seed % ids.shape[0]]
    pools, rows = next(
        each
        for each in zip(both, ties, strict=True)
        if chosen in each[0].table.provider_ids[each[1]]
    )
    row = int(rows[pools.table.provider_ids[rows] == chosen][0])
    return _placed(pools, row, int(best))


def _rows_with(pools: _Pools, free: float) -> npt.NDArray[np.intp]:
    """Return the rows of the pools that are left and have this amount free."""
    column = pools.table.free.get(pools.spec.class_name)
    if column is None or not pools.is_any_left:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(pools.alive & (column == free))


def _greatest(pools: _Pools) -> float:
    free = pools.table.free.get(pools.spec.class_name)
    if free is None or not pools.is_any_left:
        return -1.0
    return float(free[pools.alive].max())


def _placed(pools: _Pools, row: int, free: int) -> PlacedVolume:
    hosts, spec = pools.hosts, pools.spec
    names: Mapping[int, str] = {code: zone for zone, code in hosts.zones.items()}
    if not pools.are_shared:
        host, zone = row, names[int(hosts.zone_codes[row])]
    else:
        reached = np.flatnonzero(pools.served(row))
        zone = spec.zone or _zone_of(hosts, reached, names, spec.default_zone)
        inside = reached[hosts.zone_codes[reached] == hosts.zones[zone]]
        host = int(inside[spec.seed % inside.shape[0]])
    return PlacedVolume(
        ProviderId(int(pools.table.provider_ids[row])),
        pools.table.generation(HostIndex(row)),
        pools.name(row),
        zone,
        hosts.names[host],
        free,
    )


def _zone_of(
    hosts: HostTable, reached: npt.NDArray[np.intp], names: Mapping[int, str], default: str
) -> str:
    zones = sorted({names[int(code)] for code in hosts.zone_codes[reached]})
    return default if default in zones else zones[0]


def take(hosts: HostTable, spec: VolumeSpec, placed: PlacedVolume) -> None:
    """Take a volume from its pool in the table, as the claim of the volume will.

    :func:`give_back` is the exact inverse.
    """
    table, index = _pool(hosts, placed)
    table.take(index, {spec.class_name: spec.amount})
    hosts.expect_claim([placed.provider_id])


def give_back(hosts: HostTable, spec: VolumeSpec, placed: PlacedVolume) -> None:
    """Undo :func:`take`. Begin with the volume that was taken last."""
    table, index = _pool(hosts, placed)
    table.give_back(index, {spec.class_name: spec.amount})
    hosts.expect_no_claim([placed.provider_id])


def _pool(hosts: HostTable, placed: PlacedVolume) -> tuple[AmountTable, HostIndex]:
    table: AmountTable = hosts if placed.provider_id in hosts.index_of else hosts.pools
    return table, table.index_of[placed.provider_id]


def nameless(decision: VolumeDecision) -> list[ProviderId]:
    """Return the pools in a decision whose names are empty."""
    placed = [] if decision.placed is None else [decision.placed]
    return [
        *(each.provider_id for each in placed if not each.name),
        *(each.provider_id for each in decision.refusals if not each.pool),
    ]


def with_names(decision: VolumeDecision, names: PoolNames) -> VolumeDecision:
    """Return a decision with these names of pools."""
    placed = decision.placed
    if placed is not None:
        placed = replace(placed, name=names.get(placed.provider_id, placed.name))
    refusals = (
        each._replace(pool=names.get(each.provider_id, each.pool)) for each in decision.refusals
    )
    return replace(decision, placed=placed, refusals=tuple(refusals))
