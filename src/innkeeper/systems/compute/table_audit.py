"""The host table of a running process, compared with the store a part at a time.

Always true: the table is first brought up to all that the transaction sees, so any difference
is a fault; rows that differ are read again, so that the next decision is right. A part is
small, since everybody's writes wait for it.
"""

from __future__ import annotations

from typing import NamedTuple

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences_of_some
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.means import Means

ROWS = 200
"""Hosts in one part; some ten milliseconds."""


class Compared(NamedTuple):
    """How many rows were compared, what differed, and where the next part begins."""

    rows: int
    told: list[str]
    next_row: int


def compare(tx: Tx, means: Means, first_row: int) -> Compared:
    """Compare the rows from one on, and mend what differs; to be called as a decision."""
    follower = means.follower
    mine = follower.table
    start = first_row if first_row < mine.host_count else 0
    ids = {ProviderId(int(each)) for each in mine.provider_ids[start : start + ROWS]}
    if not ids:
        return Compared(0, [], 0)
    theirs = HostTable()
    theirs.knows_servers = mine.knows_servers
    loader.load(tx, theirs, ids)
    told = differences_of_some(mine, theirs, ids)
    if told:
        follower.touch(ids | loader.load(tx, mine, ids))
    return Compared(len(ids), told, start + ROWS)
