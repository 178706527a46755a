"""Fill what a host table knows of pools: who they are, what they have, whom they serve.

Always true afterwards: each pool that was asked for shows what the transaction sees, and a
provider that is no pool (any more) has no row among them; while there are pools, every host's
membership code stands for the aggregates of its whole tree.
"""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amount_loader import load_amounts
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries import capacity, pools
from innkeeper.store.transactions import Tx


def load(
    tx: Tx,
    table: HostTable,
    hosts: Collection[ProviderId],
    others: Collection[ProviderId] | None,
) -> set[ProviderId]:
    """Read anew which aggregates ``hosts`` are in, and which of the ``others`` are pools.

    ``None`` stands for everybody who is no host. Without pools a cloud pays for nothing here:
    nobody is asked for his aggregates until there is one. Gives the hosts whose memberships
    were read beside those of ``hosts``.
    """
    near: set[ProviderId] = set()
    if others is None or others:
        _load_pools(tx, table, others)
    if not table.pools.row_count:
        table.knows_memberships = False
    elif not table.knows_memberships:
        _load_memberships(tx, table, None)
        table.knows_memberships = True
    else:
        # What is below a host, or above it, puts it into aggregates as well.
        near = pools.hosts_in_trees(tx, others) if others else near
        _load_memberships(tx, table, near.union(hosts))
    return near


def _load_pools(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> None:
    mine = table.pools
    found = pools.uuids(tx, ids)
    before = mine.shape()
    for provider_id in list(mine.index_of) if ids is None else ids:
        if provider_id not in found:
            mine.remove_row(provider_id)
    if found:
        mine.add_rows(found)
        for provider_id, uuid in found.items():
            row = mine.index_of[provider_id]
            mine.clear_row(row)
            mine.uuids[row] = uuid
        load_amounts(tx, mine, found)
        aggregates: dict[ProviderId, list[str]] = {}
        for provider_id, aggregate in capacity.aggregate_rows(tx, found):
            aggregates.setdefault(provider_id, []).append(aggregate)
        for provider_id in found:
            row = mine.index_of[provider_id]
            mine.aggregates[row] = frozenset(aggregates.get(provider_id, ()))
        # A class of pools alone must be known where amounts are compared and claimed.
        table.class_ids = mine.class_ids
        for name in mine.free:
            table.ensure_class(name)
    if mine.shape() != before:
        mine.reshape()


def _load_memberships(tx: Tx, table: HostTable, hosts: Collection[ProviderId] | None) -> None:
    wanted = table.index_of.keys() if hosts is None else hosts
    if not wanted:
        return
    found = pools.tree_aggregates(tx, hosts)
    sets: dict[frozenset[str], int] = {}
    for provider_id in wanted:
        index = table.index_of.get(provider_id)
        if index is None:
            continue
        aggregates = frozenset(found.get(provider_id, ()))
        code = sets.get(aggregates)
        if code is None:
            code = sets[aggregates] = table.pools.code(aggregates)
        table.membership_codes[index] = code
