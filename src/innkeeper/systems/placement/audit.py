"""The placement room's invariants, checked against the store."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding
from innkeeper.store.queries import placement_audit
from innkeeper.store.transactions import Tx

ROOM = "placement"


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about providers, consumers and allocations that is not as it must be."""
    for uuid, name, used, capacity in placement_audit.over_capacity(tx):
        yield Finding(
            ROOM,
            "sold at most the capacity",
            f"{used} of {name} are held of provider {uuid}, whose capacity is {capacity:g}",
        )
    for consumer, uuid, name in placement_audit.without_inventory(tx):
        yield Finding(
            ROOM,
            "allocations stand on an inventory",
            f"consumer {consumer} holds {name} of provider {uuid}, which has none",
        )
    for consumer, count in placement_audit.without_consumer(tx):
        yield Finding(
            ROOM,
            "allocations belong to a consumer",
            f"{count} allocations belong to {consumer}, which does not exist",
        )
    for (consumer,) in placement_audit.idle_consumers(tx):
        yield Finding(
            ROOM, "consumers exist while they hold something", f"{consumer} holds nothing"
        )
    for (uuid,) in placement_audit.lost_roots(tx):
        yield Finding(
            ROOM, "a child has its parent's root", f"provider {uuid} names another root"
        )
