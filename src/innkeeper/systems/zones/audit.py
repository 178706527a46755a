"""Check the invariants of servers in child zones in the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.zone_tree import ZoneServerState
from innkeeper.store import periodic
from innkeeper.store.queries.zones import audit
from innkeeper.store.transactions import Tx

ROOM = "zones"
REPAIR_TASK = "zone_repair"
"""The periodic task that finishes or undoes the work of processes that died."""
DECIDED_WITHIN = timedelta(hours=1)
_invariant = partial(Invariant, ROOM)
IN_TWO_ZONES = _invariant(
    "in-two-zones",
    "no server is both in this zone and in a child zone",
    "Find out in which zone the server runs, and delete it in the other zone.",
)
UNDECIDED = _invariant(
    "undecided-below",
    "the outcome of a boot in a child zone is known after an hour: each server is built or gone",
    "Enable the child zone, and check that it answers. The service then finishes the work.",
)
INVARIANTS = (IN_TWO_ZONES, UNDECIDED)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about servers in child zones."""
    for (uuid,) in audit.in_two_zones(tx):
        yield IN_TWO_ZONES.broken(uuid, f"server {uuid} is in this zone and in a child zone")
    # The hour ends at the last repair, because a stopped service repairs nothing.
    last = periodic.last_turn(tx, REPAIR_TASK)
    if last is None:
        return
    states = (ZoneServerState.BUILDING, ZoneServerState.UNDOING)
    for uuid, state in audit.in_states_since(tx, states, last - DECIDED_WITHIN):
        yield UNDECIDED.broken(uuid, f"server {uuid} in a child zone is still {state}")
