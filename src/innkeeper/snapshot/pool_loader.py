"""Fill what a host table knows of pools: who they are, what they have, whom they serve.

Always true afterwards: each pool that was asked for shows what the transaction sees, and a
provider that is no pool (any more) has no row among them; while there are pools, every host's
membership code stands for the aggregates of its whole tree.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amount_loader import load_amounts
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.placement import capacity, pools
from innkeeper.store.transactions import Tx


def load(
    tx: Tx, table: HostTable, hosts: Collection[ProviderId], others: Collection[ProviderId] | None
) -> set[ProviderId]:
    """Read anew which aggregates ``hosts`` are in, and which of the ``others`` are pools.

    ``None`` stands for everybody who is no host. Without pools a cloud pays for nothing here:
    nobody is asked for his aggregates until there is one. Gives the hosts whose memberships
    changed, some of which may not have been asked for.
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
        near = _load_memberships(tx, table, {*hosts, *(others or ())})
    return near


def _load_pools(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> None:
    mine = table.pools
    found = pools.uuids(tx, ids)
    before = mine.ties()
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
    if mine.ties() != before:
        mine.regroup()


def _load_memberships(
    tx: Tx, table: HostTable, ids: Collection[ProviderId] | None
) -> set[ProviderId]:
    """Read anew the aggregates of the trees that these providers are in, or of all hosts'.

    Any of a tree puts all its hosts into aggregates. Who comes to another tree is among
    ``ids``, and so is somebody of the tree that he left.
    """
    roots = pools.roots(tx, ids)
    trees = set(roots.values())
    found = pools.tree_aggregates(tx, None if ids is None else trees)
    codes = {root: table.pools.code(frozenset(found.get(root, ()))) for root in trees}
    mine = [each for each in roots if each in table.index_of]
    at = np.array([table.index_of[each] for each in mine], dtype=np.intp)
    now = np.array([roots[each] for each in mine], dtype=np.int64)
    wanted = np.array([codes[roots[each]] for each in mine], dtype=np.int32)
    # The hosts of a tree have one code. While one that stayed in it has the right one, so have
    # the others, and nobody looks for them: most changes are to what somebody holds.
    differs = (table.root_ids[at] != now) | (table.membership_codes[at] != wanted)
    table.root_ids[at] = now
    changed = {*now[differs].tolist(), *(roots[each] for each in roots.keys() - set(mine))}
    rows = np.flatnonzero(np.isin(table.root_ids, list(changed))) if changed else at[:0]
    table.membership_codes[rows] = [codes[root] for root in table.root_ids[rows].tolist()]
    table.note_all(rows)
    table.renumber_memberships()
    return {ProviderId(each) for each in table.provider_ids[rows].tolist()}
