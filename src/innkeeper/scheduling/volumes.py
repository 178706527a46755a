"""Choose a pool for a volume, with filters and a weigher on the columns of the host table.

Always true: the choice depends only on the table and the spec, which contains a seed. The tally of
a filter counts only pools that passed all earlier filters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import Generation, HostIndex, ProviderId
from innkeeper.scheduling.volume_filters import (
    FILTERS,
    NONE_REMOVED,
    STEADY_FILTERS,
    PoolNames,
    Pools,
    VolumeSpec,
)
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.snapshot.columns import HostTable


class PoolTally(NamedTuple):
    """The number of pools that a filter removed."""

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
    """The chosen pool with its generation and zone, and the host whose agent makes the volume."""

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


class PoolChooser:
    """Chooses pools for volumes on one host table.

    Between two choices, only the amounts in the table may change.

    Always true: the filters that read no amounts run once for all volumes with the same demands.
    """

    def __init__(self, hosts: HostTable) -> None:
        self._hosts = hosts
        self._kept: dict[VolumeSpec, tuple[list[Pools], list[PoolTally]]] = {}

    def choose(
        self, spec: VolumeSpec, names: PoolNames, *, refusals_max: int = 0
    ) -> VolumeDecision:
        """Choose the pool with the largest free amount.

        ``names`` has the names of all shared pools if the spec :attr:`~VolumeSpec.demands_names`.
        Shared pools that are not in ``names`` have an empty name in the decision; see
        :func:`with_names`. At most ``refusals_max`` refused pools are returned.
        """
        demands = replace(spec, amount=0, seed=0)
        if demands not in self._kept:
            fresh = [Pools(self._hosts, spec, names, are_shared=each) for each in (False, True)]
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
    """Choose a pool for one volume; see :meth:`PoolChooser.choose`."""
    return PoolChooser(hosts).choose(spec, names, refusals_max=refusals_max)


def _run(both: list[Pools], number: int) -> PoolTally:
    """Run a filter on the remaining pools, and count the pools that it removes."""
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


def refused(both: list[Pools], most: int) -> list[PoolRefusal]:
    """Return the refused pools, shared pools first."""
    found: list[PoolRefusal] = []
    for pools in reversed(both):
        rows = np.flatnonzero(pools.removed_by != NONE_REMOVED)[: max(0, most - len(found))]
        for row in rows.tolist():
            name, reason, _ = FILTERS[int(pools.removed_by[row])]
            provider_id = ProviderId(int(pools.table.provider_ids[row]))
            found.append(PoolRefusal(provider_id, pools.name(row), name, reason))
    return found


def _most_free(pools: Pools) -> int:
    free = pools.table.free.get(pools.spec.class_name)
    if free is None or not pools.candidate_count:
        return 0
    return int(free[pools.is_candidate].max(initial=0.0))


def _best(both: list[Pools], spec: VolumeSpec) -> PlacedVolume | None:
    best = max((_greatest(pools) for pools in both), default=-1.0)
    if best < 0:
        return None
    ties = [_rows_with(pools, best) for pools in both]
    ids = np.concatenate([p.table.provider_ids[rows] for p, rows in zip(both, ties, strict=True)])
    # Ties are sorted by id, because a row may move when another row is removed.
    chosen = np.sort(ids)[spec.seed % ids.shape[0]]
    pools, rows = next(
        each
        for each in zip(both, ties, strict=True)
        if chosen in each[0].table.provider_ids[each[1]]
    )
    row = int(rows[pools.table.provider_ids[rows] == chosen][0])
    return _placed(pools, row, int(best))


def _rows_with(pools: Pools, free: float) -> npt.NDArray[np.intp]:
    """Return the rows of the remaining pools that have exactly this amount free."""
    column = pools.table.free.get(pools.spec.class_name)
    if column is None or not pools.is_any_left:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(pools.alive & (column == free))


def _greatest(pools: Pools) -> float:
    free = pools.table.free.get(pools.spec.class_name)
    if free is None or not pools.is_any_left:
        return -1.0
    return float(free[pools.alive].max())


def _placed(pools: Pools, row: int, free: int) -> PlacedVolume:
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
    """Take the amount of a volume from its pool in the table, as the later claim will do.

    :func:`give_back` is the exact inverse.
    """
    table, index = _pool(hosts, placed)
    table.take(index, {spec.class_name: spec.amount})
    hosts.expect_claim([placed.provider_id])


def give_back(hosts: HostTable, spec: VolumeSpec, placed: PlacedVolume) -> None:
    """Undo :func:`take`. If several volumes were taken, begin with the last of them."""
    table, index = _pool(hosts, placed)
    table.give_back(index, {spec.class_name: spec.amount})
    hosts.expect_no_claim([placed.provider_id])


def _pool(hosts: HostTable, placed: PlacedVolume) -> tuple[AmountTable, HostIndex]:
    table: AmountTable = hosts if placed.provider_id in hosts.index_of else hosts.pools
    return table, table.index_of[placed.provider_id]


def nameless(decision: VolumeDecision) -> list[ProviderId]:
    """Return the ids of the pools in a decision that have empty names."""
    placed = [] if decision.placed is None else [decision.placed]
    return [
        *(each.provider_id for each in placed if not each.name),
        *(each.provider_id for each in decision.refusals if not each.pool),
    ]


def with_names(decision: VolumeDecision, names: PoolNames) -> VolumeDecision:
    """Return a decision with these names filled in for the pools."""
    placed = decision.placed
    if placed is not None:
        placed = replace(placed, name=names.get(placed.provider_id, placed.name))
    refusals = (
        each._replace(pool=names.get(each.provider_id, each.pool)) for each in decision.refusals
    )
    return replace(decision, placed=placed, refusals=tuple(refusals))
