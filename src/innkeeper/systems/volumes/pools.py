"""List the pools that volumes can be on, with their capacity.

Always true: this module reads only the database. So it can run in read-only transactions. To choose
a pool, :mod:`innkeeper.scheduling.volumes` reads the host table instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.volumes import PoolFacts, VolumeUsage
from innkeeper.store.queries.volumes import pools, volumes
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import types

POOLS_MAX = 1000
"""The maximum number of listed pools of a resource class."""

NOWHERE = ("", "")
"""The zone and the host that are shown for a pool that is down."""
Places = dict[str, str]
"""Maps each availability zone to one host that is up and reaches the pool."""


def listing(tx: Tx, before: datetime, default_zone: str, *, takes_hosts: bool) -> list[PoolFacts]:
    """Return the pools of the usual resource class and of the classes that volume types name.

    Shared pools are first. Hosts without a heartbeat since ``before`` count as down.
    """
    classes = {types.USUAL_CLASS}
    for each in types.listing(tx, None, is_admin=True):
        classes.add(types.demands_of(each.extra_specs).class_name)
    sums = volumes.sums_by_pool(tx)
    found: list[PoolFacts] = []
    for class_name in sorted(classes):
        shared = pools.shared(tx, class_name, POOLS_MAX)
        ids = [ProviderId(row[0]) for row in shared]
        places = {
            pool: _place(zones, default_zone) for pool, zones in _reached(tx, ids, before).items()
        }
        rows = [(*row, True, *places.get(row[0], NOWHERE)) for row in shared]
        if takes_hosts:
            own = pools.on_hosts(tx, class_name, before, POOLS_MAX - len(shared))
            rows += [
                (pool, name, total, False, *((zone, name) if is_up else NOWHERE))
                for pool, name, total, zone, is_up in own
            ]
        found += _facts(tx, class_name, rows, sums)
    return found


def _facts(
    tx: Tx,
    class_name: str,
    rows: Collection[tuple[ProviderId, str, float, bool, str, str]],
    sums: Mapping[ProviderId, VolumeUsage],
) -> Iterator[PoolFacts]:
    ids = [row[0] for row in rows]
    used = pools.used(tx, ids, class_name)
    traits: dict[ProviderId, list[str]] = {}
    for provider_id, trait in pools.trait_names(tx, ids):
        traits.setdefault(provider_id, []).append(trait)
    for provider_id, name, total, is_shared, zone, host in rows:
        yield PoolFacts(
            provider_id,
            name,
            class_name,
            is_shared,
            bool(host),
            zone,
            host,
            int(total),
            used.get(provider_id, 0),
            tuple(sorted(traits.get(provider_id, ()))),
            sums.get(provider_id, VolumeUsage()),
        )


def _reached(tx: Tx, ids: Collection[ProviderId], before: datetime) -> dict[ProviderId, Places]:
    """For each shared pool and each zone that it serves, return one host that is up."""
    if not ids:
        return {}
    links = pools.links(tx, ids)
    places: dict[int, list[tuple[str, str]]] = {}
    for root, zone, name in pools.hosts_up(tx, before):
        places.setdefault(root, []).append((zone, name))
    by_aggregate: dict[str, Places] = {}
    for aggregate, root in pools.members(tx, {aggregate for _, aggregate in links}):
        if root in places:
            mine = by_aggregate.setdefault(aggregate, {})
            for zone, name in places[root]:
                mine[zone] = min(name, mine.get(zone, name))
    found: dict[ProviderId, Places] = {}
    for pool, aggregate in links:
        if aggregate in by_aggregate:
            mine = found.setdefault(ProviderId(pool), {})
            for zone, name in by_aggregate[aggregate].items():
                mine[zone] = min(name, mine.get(zone, name))
    return found


def _place(reached: Places, default_zone: str) -> tuple[str, str]:
    """Return the zone and the host that stand for a shared pool."""
    zone = default_zone if default_zone in reached else min(reached)
    return zone, reached[zone]
