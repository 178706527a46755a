"""Check the invariants of providers, consumers and allocations in the database."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.queries.placement import audit
from innkeeper.store.transactions import Tx

ROOM = "placement"
OVER_CAPACITY = Invariant(
    ROOM,
    "over-capacity",
    "the allocations of a provider do not exceed its capacity",
    "Move or delete consumers, or correct the inventory of the provider.",
)
NO_INVENTORY = Invariant(
    ROOM,
    "no-inventory",
    "the provider of an allocation has an inventory of the same resource class",
    "Restore the inventory, or delete the allocations if the consumer no longer exists.",
)
NO_CONSUMER = Invariant(
    ROOM,
    "no-consumer",
    "the consumer of an allocation exists",
    "Delete the allocations if nobody knows their owner.",
    "creates the consumer. If a server or migration has this id, the consumer gets its project",
)
IDLE_CONSUMER = Invariant(
    ROOM,
    "idle-consumer",
    "every consumer has allocations",
    "Replace the consumer's allocations with an empty set, through the Placement API.",
    "removes the consumer",
)
EMPTY_ALLOCATION = Invariant(
    ROOM,
    "empty-allocation",
    "an allocation is at least one unit",
    "Replace the consumer's allocations with the amounts that the consumer really uses.",
)
STRANGE_INVENTORY = Invariant(
    ROOM,
    "strange-inventory",
    "the fields of an inventory are within their bounds",
    "Write the inventory again. For a host, restart its agent.",
)
WRONG_ROOT = Invariant(
    ROOM,
    "wrong-root",
    "a provider has the same root as its parent",
    "Set the provider's parent again.",
    "sets the root to the provider's topmost ancestor",
)
CIRCLE = Invariant(
    ROOM,
    "circle",
    "the parents of providers do not form a cycle",
    "Remove the parent of one provider in the cycle, in the database.",
)
UNTOLD = Invariant(
    ROOM,
    "untold-change",
    "the change feed has the latest generation of each provider",
    "Restart all processes, because their data about the provider may be stale.",
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
    """Yield all findings about providers, consumers and allocations."""
    yield from _of_allocations(tx)
    yield from _of_providers(tx)


def _of_allocations(tx: Tx) -> Iterator[Finding]:
    for uuid, name, used, capacity in audit.over_capacity(tx):
        yield OVER_CAPACITY.broken(
            uuid,
            f"{used} units of {name} are allocated on provider {uuid}, "
            f"but its capacity is {capacity:g}",
        )
    for consumer, uuid, name in audit.without_inventory(tx):
        yield NO_INVENTORY.broken(
            consumer,
            f"consumer {consumer} has an allocation of {name} on provider {uuid}, "
            "which has no inventory of that class",
        )
    for consumer, count in audit.without_consumer(tx):
        yield NO_CONSUMER.broken(
            consumer, f"{count} allocations belong to consumer {consumer}, which does not exist"
        )
    for (consumer,) in audit.idle_consumers(tx):
        yield IDLE_CONSUMER.broken(consumer, f"consumer {consumer} has no allocations")
    for consumer, uuid, used in audit.empty_allocations(tx):
        yield EMPTY_ALLOCATION.broken(
            consumer, f"consumer {consumer} has an allocation of {used} units on provider {uuid}"
        )


def _of_providers(tx: Tx) -> Iterator[Finding]:
    for uuid, name in audit.invalid_inventories(tx):
        yield STRANGE_INVENTORY.broken(
            uuid, f"provider {uuid} has an inventory of {name} with invalid values"
        )
    for (uuid,) in audit.wrong_roots(tx):
        yield WRONG_ROOT.broken(uuid, f"provider {uuid} has a different root than its parent")
    for (uuid,) in audit.parent_cycles(tx):
        yield CIRCLE.broken(uuid, f"provider {uuid} is in or below a cycle of parents")
    for uuid, _, generation, known in audit.missing_changes(tx):
        yield UNTOLD.broken(
            uuid,
            f"provider {uuid} is at generation {generation}, but its latest generation in the "
            f"change feed is {known}",
        )
