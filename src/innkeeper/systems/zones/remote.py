"""Servers in child zones: the zone of each server, and the state of its boot or deletion.

A boot batch is the servers of one boot request. The batch is undecided until enough of its servers
are built, or all servers are undone.

Always true: a row is written before the child is asked to build the server. The row is kept until
it is certain that the child does not have the server. So a process that restarts finds all servers
that it may have begun to build. While a batch is undecided and any of its servers may exist, at
least one row has the batch's ``batch_min``, the number of servers that must be built.

Source: ADR 0037.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.zone_tree import ZoneServer, ZoneServerState
from innkeeper.store.queries.zones import remote
from innkeeper.store.queries.zones.remote import UsedEntry
from innkeeper.store.transactions import Tx

TOMBSTONE_LIFETIME = timedelta(seconds=900)
"""How long a forbidden server id is kept. Build plan entries expire earlier, so no late request can
build the server after this time."""
BEGUN = (ZoneServerState.BUILDING, ZoneServerState.BUILT)
ANY = (
    ZoneServerState.BUILDING,
    ZoneServerState.BUILT,
    ZoneServerState.UNDOING,
    ZoneServerState.DELETING,
)

# Queries that are re-exported unchanged.
add = remote.add
by_uuids = remote.by_uuids
of_batch = remote.of_batch
undecided = remote.undecided
undone = remote.undone
deleted = remote.deleted
changed_since = remote.changed_since
of_prefix = remote.of_prefix
children_of_project = remote.children_of_project
page = remote.page
remove = remote.remove
set_amounts = remote.set_amounts


def get(tx: Tx, uuid: str) -> ZoneServer | None:
    """Return the record of a server that is or may be in a child zone."""
    found = remote.by_uuids(tx, [uuid])
    return found[0] if found else None


def settle(tx: Tx, uuids: Collection[str], now: datetime) -> bool:
    """Decide to keep the servers of a boot request.

    Return False if some of the servers are already being undone.
    """
    return remote.set_state(tx, uuids, BEGUN, ZoneServerState.BUILT, now) == len(uuids)


def keep(tx: Tx, built: Collection[str], others: Collection[str], now: datetime) -> bool:
    """Decide on the servers of one boot request: keep those in ``built``, and forget ``others``.

    The caller knows that no child zone has a server in ``others``. Return False if the decision was
    already made.
    """
    if built and remote.keep(tx, built, now) != len(built):
        return False
    return not others or decide(tx, others)


@dataclass(frozen=True, slots=True)
class BuiltBelow:
    """The built servers of one boot request, all of which the repair wants to keep."""

    uuids: Collection[str]
    now: datetime


def settle_together(tx: Tx, built: Sequence[BuiltBelow]) -> list[None]:
    """Decide to keep the servers of several boot requests, except servers that are being undone."""
    uuids = [uuid for each in built for uuid in each.uuids]
    remote.settle(tx, uuids, max(each.now for each in built))
    return [None] * len(built)


def begin_undo(tx: Tx, uuids: Collection[str], now: datetime) -> int:
    """Decide that child zones must delete these servers. Return the number of undone servers."""
    return remote.set_state(tx, uuids, ANY, ZoneServerState.UNDOING, now)


def begin_delete(tx: Tx, uuid: str, now: datetime) -> None:
    """Record that the child zone accepted a request to delete a server."""
    states = (ZoneServerState.BUILT, ZoneServerState.BUILDING)
    remote.set_state(tx, [uuid], states, ZoneServerState.DELETING, now)


def decide(tx: Tx, uuids: Collection[str]) -> bool:
    """Mark the boot request of these servers as decided. Return False if it is already decided."""
    return remote.decide(tx, uuids) == len(uuids)


def touch(tx: Tx, uuids: Collection[str], now: datetime) -> bool:
    """Record that a boot request is still in progress. Return False if it is already decided."""
    return remote.touch(tx, uuids, now, 1) == len(uuids)


def look_later(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Move servers to the end of the repair's queue, because nothing can be repaired now."""
    remote.touch(tx, uuids, now, 0)


def look_after(tx: Tx, uuid: str, moment: datetime) -> None:
    """Let the repair lower the amounts of a server only after ``moment``."""
    remote.touch(tx, [uuid], moment, 0)


def look_soon(tx: Tx, uuid: str, now: datetime) -> None:
    """Record that the amounts of a server in a child zone are about to change.

    If the repair must wait for a later moment, see :func:`look_after`, it still waits.
    """
    server = get(tx, uuid)
    if server is not None and server.updated_at < now:
        built = (ZoneServerState.BUILT,)
        remote.set_state(tx, [uuid], built, ZoneServerState.BUILT, now)


def forbid(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Forbid late requests to build these servers in this zone or in a child zone."""
    known, until = remote.used(tx, uuids), now + TOMBSTONE_LIFETIME
    fresh = [uuid for uuid in dict.fromkeys(uuids) if uuid not in known]
    remote.use_many(tx, [UsedEntry(uuid, None, until) for uuid in fresh])


def forbidden(tx: Tx, uuids: Collection[str]) -> Collection[str]:
    """Return the servers among ``uuids`` that must not be built."""
    return remote.used(tx, uuids).keys()


def by_child(servers: Sequence[ZoneServer]) -> Mapping[int, list[ZoneServer]]:
    """Return servers by the row id of their child zone."""
    found: dict[int, list[ZoneServer]] = {}
    for each in servers:
        found.setdefault(each.child_id, []).append(each)
    return found
