"""The placement room's invariants, checked against the store."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.queries.placement import audit
from innkeeper.store.transactions import Tx

ROOM = "placement"
OVER_CAPACITY = Invariant(
    ROOM,
    "over-capacity",
    "allocations are within the capacity",
    "Move or delete consumers, or give the provider the inventory that it really has.",
)
NO_INVENTORY = Invariant(
    ROOM,
    "no-inventory",
    "the provider of an allocation has an inventory of its class",
    "Write the inventory again, or delete the consumer's allocations if it is gone.",
)
NO_CONSUMER = Invariant(
    ROOM,
    "no-consumer",
    "allocations belong to a consumer",
    "Delete the allocations if their owner is unknown.",
    "creates the consumer, in the project of its server or migration, or else in none",
)
IDLE_CONSUMER = Invariant(
    ROOM,
    "idle-consumer",
    "every consumer has allocations",
    "Delete the consumer's allocations, although there are none.",
    "removes the consumer",
)
EMPTY_ALLOCATION = Invariant(
    ROOM,
    "empty-allocation",
    "an allocation is at least one unit",
    "Replace the consumer's allocations with what it really uses.",
)
STRANGE_INVENTORY = Invariant(
    ROOM,
    "strange-inventory",
    "an inventory is within its bounds",
    "Write the inventory again; the agent of a host does so when it is restarted.",
)
WRONG_ROOT = Invariant(
    ROOM,
    "wrong-root",
    "a child has its parent's root",
    "Set the provider's parent again.",
    "writes the root that its parents lead to",
)
CIRCLE = Invariant(
    ROOM,
    "circle",
    "parents do not form a cycle",
    "Remove the parent of one of them in the database.",
)
UNTOLD = Invariant(
    ROOM,
    "untold-change",
    "the change feed has every generation",
    "Restart all processes: what they know of the provider may be stale.",
    "makes every process read the provider again",
)
INVARIANTS = (
    OVER_CAPACITY,
    NO_INVENTORY,
    NO_CONSUMER,
    IDLE_CONSUMER,
    EMPTY_ALLOCATION,
    STRANGE_INVENTORY,
    WRONG_ROOT,
    CIRCLE,
    UNTOLD,
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Return all findings about providers, consumers and allocations."""
    yield from _of_allocations(tx)
    yield from _of_providers(tx)


def _of_allocations(tx: Tx) -> Iterator[Finding]:
    for uuid, name, used, capacity in audit.over_capacity(tx):
        yield OVER_CAPACITY.broken(
            uuid, f"{used} of {name} are held of provider {uuid}, with a capacity of {capacity:g}"
        )
    for consumer, uuid, name in audit.without_inventory(tx):
        yield NO_INVENTORY.broken(
            consumer, f"consumer {consumer} holds {name} of provider {uuid}, which has none"
        )
    for consumer, count in audit.without_consumer(tx):
        yield NO_CONSUMER.broken(
            consumer, f"{count} allocations belong to {consumer}, which does not exist"
        )
    for (consumer,) in audit.idle_consumers(tx):
        yield IDLE_CONSUMER.broken(consumer, f"{consumer} holds nothing")
    for consumer, uuid, used in audit.empty_allocations(tx):
        yield EMPTY_ALLOCATION.broken(
            consumer, f"consumer {consumer} holds {used} units of provider {uuid}"
        )


def _of_providers(tx: Tx) -> Iterator[Finding]:
    for uuid, name in audit.invalid_inventories(tx):
        yield STRANGE_INVENTORY.broken(
            uuid, f"the inventory of {name} of provider {uuid} is out of bounds"
        )
    for (uuid,) in audit.wrong_roots(tx):
        yield WRONG_ROOT.broken(uuid, f"provider {uuid} names another root")
    for (uuid,) in audit.parent_cycles(tx):
        yield CIRCLE.broken(uuid, f"provider {uuid} is in or below a cycle of parents")
    for uuid, _, generation, known in audit.missing_changes(tx):
        yield UNTOLD.broken(
            uuid, f"provider {uuid} is at generation {generation}, and the feed ends at {known}"
        )
