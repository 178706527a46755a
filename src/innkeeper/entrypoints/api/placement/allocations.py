"""Handlers of ``/allocations``, the allocations of providers, ``/usages`` and ``/reshaper``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.placement import Allocation
from innkeeper.engine.retry import ALLOCATIONS, RESHAPE
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.placement.inventories import inventory_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import allocations, usages
from innkeeper.systems.placement import reshape as reshape_rules
from innkeeper.systems.placement.allocations import AllocationUpdate, AllocationUpdates
from innkeeper.systems.placement.reshape import ProviderShape


@dataclass(frozen=True, slots=True)
class AllocationOptions:
    """Options that the microversion sets for writes of allocations.

    If ``asks_no_generation`` is true, the consumer's generation is not compared.
    """

    asks_no_generation: bool = False


async def show(call: Call) -> Answer:
    """Show the allocations of a consumer, or no allocations for an unknown consumer."""
    held = await call.read(lambda tx: allocations.of_consumer(tx, call.params["consumer"]))
    lines: dict[str, dict[str, Any]] = {}
    for each in held.allocations:
        line = lines.setdefault(
            each.provider_uuid, {"resources": {}, "generation": each.provider_generation}
        )
        line["resources"][each.class_name] = each.used
    body: dict[str, Any] = {"allocations": lines}
    if held.consumer is not None:
        body["project_id"] = held.consumer.project_id
        body["user_id"] = held.consumer.user_id
        body["consumer_generation"] = held.consumer.generation
        body["consumer_type"] = held.consumer.consumer_type or usages.UNTYPED
    return Answer(body=body, headers=_headers(call, held.allocations))


async def list_of_provider(call: Call) -> Answer:
    """List the allocations of a resource provider, by consumer."""
    given = await call.read(lambda tx: allocations.of_provider(tx, call.params["uuid"]))
    lines: dict[str, dict[str, Any]] = {}
    for each in given.allocations:
        consumer = given.consumers[each.consumer_uuid]
        line = lines.setdefault(
            consumer.uuid, {"resources": {}, "consumer_generation": consumer.generation}
        )
        line["resources"][each.class_name] = each.used
    body = {"allocations": lines, "resource_provider_generation": given.generation}
    return Answer(body=body, headers=_headers(call, given.allocations))


def _headers(call: Call, found: list[Allocation]) -> dict[str, str]:
    return caching.headers(call, (each.created_at for each in found))


def _update(call: Call, consumer: str, body: Mapping[str, Any]) -> AllocationUpdate:
    return AllocationUpdate(
        consumer=consumer,
        resources={uuid: line["resources"] for uuid, line in body["allocations"].items()},
        seen=body.get("consumer_generation"),
        asks_no_generation=call.options.of(AllocationOptions).asks_no_generation,
        project_id=body.get("project_id"),
        user_id=body.get("user_id"),
        consumer_type=body.get("consumer_type"),
    )


async def demand_uuid(call: Call) -> None:
    """Raise :class:`Invalid` for a consumer whose id is not a UUID."""
    allocations.consumer_uuid(call.params["consumer"])


async def replace(call: Call) -> Answer:
    """Replace the allocations of a consumer."""
    return await _write(call, [_update(call, call.params["consumer"], call.body)])


async def replace_many(call: Call) -> Answer:
    """Replace the allocations of several consumers, all or nothing."""
    return await _write(call, [_update(call, name, body) for name, body in call.body.items()])


async def _write(call: Call, updates: Sequence[AllocationUpdate]) -> Answer:
    item = AllocationUpdates(updates, call.now)
    await call.write_together(
        allocations.write_together, item, line_count(updates), retry=ALLOCATIONS
    )
    return Answer(204)


def line_count(updates: Iterable[AllocationUpdate]) -> int:
    """Return the number of rows to write. A consumer without amounts also counts as one row."""
    return sum(max(1, sum(map(len, each.resources.values()))) for each in updates)


async def delete(call: Call) -> Answer:
    """Delete the allocations of a consumer."""
    consumer = call.params["consumer"]
    await call.write(lambda tx: allocations.delete(tx, consumer, call.now))
    return Answer(204)


async def show_usages(call: Call) -> Answer:
    """Show the usages of a project, by consumer type."""
    project_id = call.last("project_id")
    assert project_id is not None, "the query's schema requires it"
    user_id, consumer_type = call.last("user_id"), call.last("consumer_type")
    found = await call.read(lambda tx: usages.of_project(tx, project_id, user_id, consumer_type))
    body = {
        kind: {"consumer_count": usage.consumers, **usage.used} for kind, usage in found.items()
    }
    return Answer(body={"usages": body}, headers=caching.headers(call))


async def reshape(call: Call) -> Answer:
    """Replace inventories and allocations together, all or nothing."""
    shapes = {
        uuid: ProviderShape(
            each["resource_provider_generation"],
            {name: inventory_of(line) for name, line in each["inventories"].items()},
        )
        for uuid, each in call.body["inventories"].items()
    }
    updates = [_update(call, name, body) for name, body in call.body["allocations"].items()]
    await call.write(
        lambda tx: reshape_rules.replace(tx, shapes, updates, call.now),
        line_count(updates) + sum(1 + len(each.inventories) for each in shapes.values()),
        RESHAPE,
    )
    return Answer(204)
