"""Check build plan entries that child zones made, and mark them as used.

Always true: the id of a server is computed from its entry. So the record of a server in a child
zone shows that its entry is in use or used.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import ZoneServerState
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.entries import EntryStale, EntryUsed
from innkeeper.systems.zones import remote, used_entries

ENTRY_IN_USE = "Another request is using this entry of a build plan. Send the request again later."


def demand_unused(tx: Tx, server_id: ServerId) -> None:
    """Raise an error if a child zone's build plan entry cannot boot the server with this id.

    Raises :class:`EntryUsed` if the server was already made. Raises :class:`EntryStale` while the
    server is being undone. Raises :class:`Conflict` while another request uses the entry.
    """
    found = remote.get(tx, server_id)
    if found is not None and found.state == ZoneServerState.BUILDING:
        raise Conflict(ENTRY_IN_USE)
    if found is not None and found.state == ZoneServerState.UNDOING:
        raise EntryStale("The server of the entry is being undone.")
    if found is not None or used_entries.used(tx, [server_id]):
        raise EntryUsed(server_id)


def settle(tx: Tx, server_id: ServerId, until: datetime, now: datetime) -> bool:
    """Keep the server that a child zone's build plan entry booted.

    Return False if the server is already being undone. Otherwise, the entry counts as used until
    ``until``, even if the server is deleted.
    """
    remote.decide(tx, [server_id])
    remote.settle(tx, [server_id], now)
    found = remote.get(tx, server_id)
    if found is None or found.state == ZoneServerState.UNDOING:
        return False
    # The entry counts as used even if the user is already deleting the server.
    used_entries.use(tx, server_id, server_id, until)
    return True
