"""Choose a pool for a volume, and put the decision into words.

Always true: this module writes nothing. Only administrators may see the names in a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.volumes import VolumeRequest
from innkeeper.scheduling.volume_filters import VolumeSpec
from innkeeper.scheduling.volumes import PoolChooser, VolumeDecision, nameless, with_names
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.loader import seconds
from innkeeper.store.queries.volumes import volumes
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes.types import TypeDemands

REFUSALS_KEPT = 10
"""The maximum number of refused pools that are stored with a volume."""
REFUSALS_SHOWN = 1000
"""The maximum number of refused pools that a dry run shows."""
NO_VALID_POOL = "No valid backend was found. "
"""The beginning of Cinder's message, which some clients recognize."""


def spec_of(
    tx: Tx,
    request: VolumeRequest,
    demands: TypeDemands,
    size_gb: int,
    *,
    now: datetime,
    takes_hosts: bool,
    silence_max_s: float,
    default_zone: str,
) -> VolumeSpec:
    """Return what a volume requires of a pool.

    Raises :class:`Invalid` if an affinity hint names an unknown volume, or if the type does not
    allow the zone.
    """
    zone = request.availability_zone
    if demands.zones:
        if zone is not None and zone not in demands.zones:
            raise Invalid(f"Availability zone {zone} is not allowed by the volume type.")
        zone = zone or min(demands.zones)
    return VolumeSpec(
        class_name=demands.class_name,
        amount=size_gb,
        seed=request.seed,
        now_s=seconds(now),
        silence_max_s=silence_max_s,
        takes_hosts=takes_hosts,
        zone=zone,
        default_zone=default_zone,
        required_traits=demands.required_traits,
        forbidden_traits=demands.forbidden_traits,
        comparisons=demands.comparisons,
        same_pools=_pools_of(tx, request, request.same_as) if request.same_as else None,
        different_pools=_pools_of(tx, request, request.different_from),
    )


def _pools_of(tx: Tx, request: VolumeRequest, uuids: tuple[str, ...]) -> frozenset[ProviderId]:
    found = volumes.by_uuids(tx, uuids)
    for uuid in uuids:
        volume = found.get(uuid)
        if volume is None or not (request.is_admin or volume.project_id == request.project_id):
            raise Invalid(f"The volume {uuid} in the scheduler hints could not be found.")
    return frozenset(each.provider_id for each in found.values() if each.provider_id is not None)


class Choices:
    """Chooses pools for several volumes, on a host table that shows the earlier choices.

    Always true: the name of a shared pool is read from the database only once.
    """

    def __init__(self, tx: Tx, table: HostTable) -> None:
        self._tx = tx
        self._table = table
        self._chooser = PoolChooser(table)
        self._names: dict[ProviderId, str] = {}

    def decide(self, spec: VolumeSpec, refusals_max: int = REFUSALS_KEPT) -> VolumeDecision:
        """Choose a pool. Raises :class:`Invalid` if no host is in the requested zone."""
        if spec.zone is not None and not self._table.has_zone(spec.zone):
            raise Invalid(f"Availability zone '{spec.zone}' is invalid.")
        if spec.demands_names:
            self._read_names(self._table.pools.index_of)
        decided = self._chooser.choose(spec, self._names, refusals_max=refusals_max)
        missing = nameless(decided)
        if missing:
            self._read_names(missing)
            return with_names(decided, self._names)
        return decided

    def _read_names(self, pools: Iterable[ProviderId]) -> None:
        unknown = [each for each in pools if each not in self._names]
        if unknown:
            self._names |= volumes.pool_names(self._tx, unknown)


def sentence(decided: VolumeDecision) -> str:
    """Return a sentence that says why no pool is valid.

    The sentence contains no names or numbers of single pools.
    """
    if not decided.considered:
        return f"{NO_VALID_POOL}No pool has capacity of the volume's resource class."
    parts = [f"{each.name} removed {each.removed} ({each.reason})" for each in decided.tallies]
    removed = [part for part, each in zip(parts, decided.tallies, strict=True) if each.removed]
    return (
        f"{NO_VALID_POOL}Of {decided.considered} pools, 0 passed all filters: "
        f"{'; '.join(removed)}. At most {decided.most_free} GiB are free in one pool."
    )


def report(decided: VolumeDecision) -> Mapping[str, Any]:
    """Return a decision in the form that is stored with a volume and shown to administrators."""
    placed = decided.placed
    return {
        "pool": None if placed is None else placed.name,
        "free_gb": None if placed is None else placed.free,
        "pools_considered": decided.considered,
        "filters": [
            {"name": each.name, "reason": each.reason, "removed": each.removed}
            for each in decided.tallies
        ],
        "refused": [
            {"pool": each.pool, "filter": each.filter_name, "reason": each.reason}
            for each in decided.refusals
        ],
    }
