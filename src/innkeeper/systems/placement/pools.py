"""Find the pools that serve a host, and the pools that hosts depend on.

A pool is a provider that shares its inventory with the hosts of its aggregates. See
:mod:`innkeeper.domain.placement` for the rules.

Source: the design *Resource Providers*, whose first example is a shared storage pool.
"""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.store.queries.placement import capacity, pools
from innkeeper.store.transactions import Tx


def serving(tx: Tx, hosts: Collection[ProviderId]) -> dict[ProviderId, list[ProviderId]]:
    """Return the pools that serve each of these hosts. Hosts without pools are omitted."""
    all_pools = pools.uuids(tx) if hosts else {}
    if not all_pools:
        return {}
    by_aggregate: dict[str, set[ProviderId]] = {}
    for pool, aggregate in capacity.aggregate_rows(tx, all_pools):
        by_aggregate.setdefault(aggregate, set()).add(ProviderId(pool))
    found: dict[ProviderId, list[ProviderId]] = {}
    roots = pools.roots(tx, hosts)
    trees = pools.tree_aggregates(tx, set(roots.values()))
    for host, root in roots.items():
        aggregates = trees.get(root, ())
        serving_pools = set[ProviderId]().union(
            *(by_aggregate.get(each, ()) for each in aggregates)
        )
        if serving_pools:
            found[host] = sorted(serving_pools)
    return found


def serves(tx: Tx, pool: ProviderId, host: ProviderId) -> bool:
    """Return True if the provider ``pool`` is a pool that serves this host."""
    if not pools.uuids(tx, [pool]):
        return False
    lent = {aggregate for _, aggregate in capacity.aggregate_rows(tx, [pool])}
    root = pools.roots(tx, [host]).get(host)
    return root is not None and not lent.isdisjoint(pools.tree_aggregates(tx, [root]).get(root, ()))


def hosts_served(tx: Tx, pool: ProviderId, limit: int) -> list[ProviderId]:
    """Return at most ``limit`` of the hosts that a pool serves."""
    return pools.hosts_served(tx, pool, limit)


def depended_on(tx: Tx, class_id: ClassId) -> set[ProviderId]:
    """Return the pools that serve at least one host that has no inventory of this class."""
    return pools.depended_on(tx, class_id)
