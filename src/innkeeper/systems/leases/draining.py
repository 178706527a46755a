"""Remove hosts that are due to leave the freepool, as soon as they are empty."""

from __future__ import annotations

from datetime import datetime

from innkeeper.store.queries.leases import freepool as freepool_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.leases import freepool

LEAVING_AT_ONCE = 50
"""The maximum number of hosts that one transaction removes. The transaction blocks all other
writers."""


def let_leave(tx: Tx, now: datetime) -> int:
    """Remove some of the hosts that are due to leave the freepool.

    Return the number of removed hosts. A host stays while it has servers or a lease holds it.
    """
    left = 0
    for host_id in freepool_rows.leaving(tx, now):
        if left == LEAVING_AT_ONCE:
            break
        host = freepool.member(tx, host_id)
        if dedications.why_not_empty(tx, host) is None and not freepool.is_reserved(tx, host):
            freepool.remove(tx, host_id, now)
            left += 1
    return left
