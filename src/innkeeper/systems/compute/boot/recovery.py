"""Finding out what became of a boot request when nobody was told.

A commit that raises may have happened all the same: the connection can die between the commit
and its answer. The ids of a request's servers are drawn before its first attempt and are
nobody else's, so its rows tell; where they came with an entry of a build plan, the rows also
tell which request made them.
"""

from __future__ import annotations

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx


def already_booted(tx: Tx, request: BootRequest) -> Booted | None:
    """How a request ended that was written down before; ``None`` if it was not."""
    known = servers.ever_known(tx, request.server_ids)
    server_ids = tuple(each for each in request.server_ids if each in known)
    if not server_ids:
        return None
    # They are written together, placed or not: what holds for one holds for all of them.
    first = servers.by_uuid(tx, server_ids[0], is_deleted_wanted=True)
    assert first is not None, "it is known"
    if request.destination is not None and first.request_id != request.request_id:
        # Another request brought the same entry, with the same id in it, and was faster.
        return None
    fault = None
    if first.status == Status.ERROR and first.fault is not None:
        fault = first.fault["message"]
    return Booted(first.batch_id, server_ids, fault)
