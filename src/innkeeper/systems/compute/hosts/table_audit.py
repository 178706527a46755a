"""The host table of a running process, compared with the store a part at a time.

Always true: the table is first brought up to all that the transaction sees, so any difference
is a fault; rows that differ are read again, so that the next decision is right. A part is
small, since everybody's writes wait for it. The first one has the pools as well, which are few.
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
"""Hosts in one part; some ten milliseconds."""


class Compared(NamedTuple):
    """How many rows were compared, what differed, and where the next part begins."""

    rows: int
    told: list[str]
    next_row: int


def compare(tx: Tx, context: DecisionContext, first_row: int) -> Compared:
    """Compare the rows from one on, and mend what differs; to be called as a decision."""
    follower = context.follower
    mine = follower.table
    start = first_row if first_row < mine.host_count else 0
    ids = {ProviderId(int(each)) for each in mine.provider_ids[start : start + ROWS]}
    if not ids:
        return Compared(0, [], 0)
    pools = set[ProviderId]() if start else set(mine.pools.index_of)
    theirs = HostTable()
    theirs.knows_servers = mine.knows_servers
    # As if they were known: who is near to pools is not compared, and takes long to find out.
    theirs.knows_memberships = True
    loader.load(tx, theirs, ids | pools)
    told = differences_of_some(mine, theirs, ids)
    if pools:
        told += differences_of_pools(mine.pools, theirs.pools)
    if told:
        follower.touch(ids | pools | loader.load(tx, mine, ids | pools))
    return Compared(len(ids), told, start + ROWS)
