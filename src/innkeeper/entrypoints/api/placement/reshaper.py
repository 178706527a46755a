"""``/reshaper``: what providers have, and what is held of it, change in one breath."""

from __future__ import annotations

from innkeeper.engine.retry import RESHAPE
from innkeeper.entrypoints.api.placement.allocations import line_count, update
from innkeeper.entrypoints.api.placement.inventories import inventory_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import reshape as reshape_rules
from innkeeper.systems.placement.reshape import ProviderShape


async def reshape(call: Call) -> Answer:
    """Replace inventories and allocations; all of them, or none."""
    shapes = {
        uuid: ProviderShape(
            each["resource_provider_generation"],
            {name: inventory_of(line) for name, line in each["inventories"].items()},
        )
        for uuid, each in call.body["inventories"].items()
    }
    updates = [update(call, consumer, body) for consumer, body in call.body["allocations"].items()]
    await call.write(
        lambda tx: reshape_rules.replace(tx, shapes, updates, call.now),
        line_count(updates) + sum(1 + len(each.inventories) for each in shapes.values()),
        RESHAPE,
    )
    return Answer(204)
