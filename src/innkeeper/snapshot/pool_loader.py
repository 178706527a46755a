"""Read the pools of a host table, and the hosts that they serve.

Always true afterwards: the requested pools match the database as the transaction sees it. Other
requested providers have no row in the pool table. If there are pools, the membership code of every
host stands for the aggregates of the host's whole tree.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import SLOT_CLASS_PREFIX
from innkeeper.snapshot.amount_loader import load_amounts
from innkeeper.snapshot.columns import HostTable, renumber
from innkeeper.store.queries.placement import capacity, pools
from innkeeper.store.transactions import Tx


def load(
    tx: Tx, table: HostTable, hosts: Collection[ProviderId], others: Collection[ProviderId] | None
) -> set[ProviderId]:
    """Read the pools among ``others``, and the aggregates of the trees of ``hosts``.

    If ``others`` is None, read all pools. If there are no pools, aggregates are not read. Return
    the hosts with changed memberships. These may include further hosts of the same trees.
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
    before = mine.ties(ids)
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
        # The host table must also have columns for classes that only pools have.
        table.class_ids = mine.class_ids
        for name in mine.free:
            table.ensure_absent_class(name)
    if mine.ties(ids) != before:
        mine.regroup()
        _drop_slots(table)


def _drop_slots(table: HostTable) -> None:
    """Drop the slot classes of reservations that are over. Each reservation has its own class."""
    slots = [name for name in table.pools.free if name.startswith(SLOT_CLASS_PREFIX)]
    for name in slots:
        if not table.pools.max_units[name].any():
            table.pools.drop_class(name)
            table.drop_class(name)


def _load_memberships(
    tx: Tx, table: HostTable, ids: Collection[ProviderId] | None
) -> set[ProviderId]:
    """Read the aggregates of the trees of these providers, or of all hosts.

    A provider's aggregates apply to all hosts of its tree. If a provider moved to another tree,
    ``ids`` must contain this provider and a provider of the former tree. Return the hosts whose
    rows were edited.
    """
    roots = pools.roots(tx, ids)
    trees = set(roots.values())
    found = pools.tree_aggregates(tx, None if ids is None else trees)
    codes = {root: table.pools.code(frozenset(found.get(root, ()))) for root in trees}
    mine = [each for each in roots if each in table.index_of]
    at = np.array([table.index_of[each] for each in mine], dtype=np.intp)
    now = np.array([roots[each] for each in mine], dtype=np.int64)
    expected = np.array([codes[roots[each]] for each in mine], dtype=np.int32)
    # All hosts of a tree have the same code. If the code of one host is correct, the other hosts
    # are not searched. This saves time, because most changes are to allocations.
    differs = (table.root_ids[at] != now) | (table.membership_codes[at] != expected)
    table.root_ids[at] = now
    changed = {*now[differs].tolist(), *(roots[each] for each in roots.keys() - set(mine))}
    rows = np.flatnonzero(np.isin(table.root_ids, list(changed))) if changed else at[:0]
    table.membership_codes[rows] = [codes[root] for root in table.root_ids[rows].tolist()]
    table.note_all(rows)
    renumber(table.pools, table.membership_codes)
    return {ProviderId(each) for each in table.provider_ids[rows].tolist()}
