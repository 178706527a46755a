"""Pools: which of them serve a host, and which are depended on.

Source: the seed *Resource Providers*, whose first example is a shared storage pool. The rules
are those of :mod:`innkeeper.domain.placement`.
"""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.store.queries.placement import capacity, pools
from innkeeper.store.transactions import Tx


def serving(tx: Tx, hosts: Collection[ProviderId]) -> dict[ProviderId, list[ProviderId]]:
    """The pools that serve each of these hosts; hosts that none serves are left out."""
    wanted = pools.uuids(tx) if hosts else {}
    if not wanted:
        return {}
    by_aggregate: dict[str, set[ProviderId]] = {}
    for pool, aggregate in capacity.aggregate_rows(tx, wanted):
        by_aggregate.setdefault(aggregate, set()).add(ProviderId(pool))
    found: dict[ProviderId, list[ProviderId]] = {}
    roots = pools.roots(tx, hosts)
    trees = pools.tree_aggregates(tx, set(roots.values()))
    for host, root in roots.items():
        near = trees.get(root, ())
        mine = set[ProviderId]().union(*(by_aggregate.get(each, ()) for each in near))
        if mine:
            found[host] = sorted(mine)
    return found


def depended_on(tx: Tx, class_id: ClassId) -> set[ProviderId]:
    """The pools that serve some host which has nothing of this class itself."""
    return pools.depended_on(tx, class_id)
