"""Compare the host table of a running process with the database, one part at a time.

Always true: the table has caught up with the transaction, so any difference is a fault. Rows that
differ are read again, so that the next decision is correct. Parts are small, because all writes
wait during a comparison. The first part includes all pools, because there are only a few.
"""

from __future__ import annotations

from typing import NamedTuple

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences_of_pools, differences_of_some
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext

ROWS = 200
"""The number of hosts in one part. Comparing a part takes about 10 ms."""


class Compared(NamedTuple):
    """The number of compared rows, their differences, and the first row of the next part."""

    rows: int
    differences: list[str]
    next_row: int


def compare(tx: Tx, context: DecisionContext, first_row: int) -> Compared:
    """Compare one part of the rows, and correct differences.

    The host table must be up to date, as for a decision.
    """
    follower = context.follower
    table = follower.table
    start = first_row if first_row < table.host_count else 0
    ids = {ProviderId(int(each)) for each in table.provider_ids[start : start + ROWS]}
    if not ids:
        return Compared(0, [], 0)
    pools = set[ProviderId]() if start else set(table.pools.index_of)
    stored = HostTable()
    stored.knows_servers = table.knows_servers
    # The aggregates of hosts near pools are slow to load, so these memberships are neither loaded
    # nor compared.
    stored.knows_memberships = True
    loader.load(tx, stored, ids | pools)
    differing = differences_of_some(table, stored, ids)
    if pools:
        differing += differences_of_pools(table.pools, stored.pools)
    if differing:
        follower.touch(ids | pools | loader.load(tx, table, ids | pools))
    return Compared(len(ids), differing, start + ROWS)
