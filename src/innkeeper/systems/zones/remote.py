"""Servers in child zones: where they are, and what is left to do about them.

Always true: a row is written before the child is asked, and stays until it is certain that the
child does not have the server. So a zone that dies can later find everything that it had begun.
While a boot batch is undecided and any of its servers may exist, there is a row with the batch's
``batch_min``. Source: ADR 0037.
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
"""How long a forbidden id is kept. No entry is valid for so long, so no late request can build the
server afterwards."""
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
    """Return a server that is, or may be, in a child zone."""
    found = remote.by_uuids(tx, [uuid])
    return found[0] if found else None


def settle(tx: Tx, uuids: Collection[str], now: datetime) -> bool:
    """Decide that servers of a boot batch stay. Return False if some are being undone already."""
    return remote.set_state(tx, uuids, BEGUN, ZoneServerState.BUILT, now) == len(uuids)


def keep(tx: Tx, built: Collection[str], others: Collection[str], now: datetime) -> bool:
    """Decide a boot batch: the servers ``built`` stay, and no child has the ``others``.

    Return False if the batch is decided already.
    """
    if built and remote.keep(tx, built, now) != len(built):
        return False
    return not others or decide(tx, others)


@dataclass(frozen=True, slots=True)
class BuiltBelow:
    """The servers of a boot batch that children have built, if the repair would keep them all."""

    uuids: Collection[str]
    now: datetime


def settle_together(tx: Tx, built: Sequence[BuiltBelow]) -> list[None]:
    """Decide that the servers of several boot batches stay, except those that are being undone."""
    uuids = [uuid for each in built for uuid in each.uuids]
    remote.settle(tx, uuids, max(each.now for each in built))
    return [None] * len(built)


def begin_undo(tx: Tx, uuids: Collection[str], now: datetime) -> int:
    """Decide that the children must not have these servers. Return how many are undone."""
    return remote.set_state(tx, uuids, ANY, ZoneServerState.UNDOING, now)


def begin_delete(tx: Tx, uuid: str, now: datetime) -> None:
    """Record that the child accepted to delete a server."""
    states = (ZoneServerState.BUILT, ZoneServerState.BUILDING)
    remote.set_state(tx, [uuid], states, ZoneServerState.DELETING, now)


def decide(tx: Tx, uuids: Collection[str]) -> bool:
    """Decide the boot batch of these servers. Return False if it is decided already."""
    return remote.decide(tx, uuids) == len(uuids)


def touch(tx: Tx, uuids: Collection[str], now: datetime) -> bool:
    """Record that a boot batch is still being built. Return False if it is decided already."""
    return remote.touch(tx, uuids, now, 1) == len(uuids)


def look_later(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Let the repair look at other servers first, because nothing can be done about these now."""
    remote.touch(tx, uuids, now, 0)


def look_soon(tx: Tx, uuid: str, now: datetime) -> None:
    """Record that the amounts of a server are about to change in its child."""
    built = (ZoneServerState.BUILT,)
    remote.set_state(tx, [uuid], built, ZoneServerState.BUILT, now)


def forbid(tx: Tx, uuids: Collection[str], now: datetime) -> None:
    """Ensure that no late request builds these servers here, or in a zone below."""
    known, until = remote.used(tx, uuids), now + TOMBSTONE_LIFETIME
    fresh = [uuid for uuid in dict.fromkeys(uuids) if uuid not in known]
    remote.use_many(tx, [UsedEntry(uuid, None, until) for uuid in fresh])


def forbidden(tx: Tx, uuids: Collection[str]) -> Collection[str]:
    """Return the servers among these that must not be built."""
    return remote.used(tx, uuids).keys()


def by_child(servers: Sequence[ZoneServer]) -> Mapping[int, list[ZoneServer]]:
    """Return servers by the row id of their child zone."""
    found: dict[int, list[ZoneServer]] = {}
    for each in servers:
        found.setdefault(each.child_id, []).append(each)
    return found
