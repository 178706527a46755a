"""``/allocations``, and the allocations of providers: who holds what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.placement import Allocation
from innkeeper.engine.retry import ALLOCATIONS
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import allocations
from innkeeper.systems.placement.allocations import AllocationUpdate, AllocationUpdates
from innkeeper.systems.placement.usages import UNTYPED


@dataclass(frozen=True, slots=True)
class AllocationOptions:
    """What older versions mean by writing allocations."""

    asks_no_generation: bool = False
    """Whether consumers are taken at whatever generation they are."""


async def show(call: Call) -> Answer:
    """Show what a consumer holds; one that is not there holds nothing."""
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
        body["consumer_type"] = held.consumer.consumer_type or UNTYPED
    return Answer(body=body, headers=_dated(call, held.allocations))


async def list_of_provider(call: Call) -> Answer:
    """Show what is held of a provider, by consumer."""
    given = await call.read(lambda tx: allocations.of_provider(tx, call.params["uuid"]))
    lines: dict[str, dict[str, Any]] = {}
    for each in given.allocations:
        consumer = given.consumers[each.consumer_uuid]
        line = lines.setdefault(
            consumer.uuid, {"resources": {}, "consumer_generation": consumer.generation}
        )
        line["resources"][each.class_name] = each.used
    body = {"allocations": lines, "resource_provider_generation": given.generation}
    return Answer(body=body, headers=_dated(call, given.allocations))


def _dated(call: Call, found: list[Allocation]) -> dict[str, str]:
    return caching.headers(call, (each.created_at for each in found))


def update(call: Call, consumer: str, body: Mapping[str, Any]) -> AllocationUpdate:
    """What a body wants a consumer to hold."""
    return AllocationUpdate(
        consumer=consumer,
        resources={uuid: line["resources"] for uuid, line in body["allocations"].items()},
        seen=body.get("consumer_generation"),
        asks_no_generation=call.options.of(AllocationOptions).asks_no_generation,
        project_id=body.get("project_id"),
        user_id=body.get("user_id"),
        consumer_type=body.get("consumer_type"),
    )


async def must_be_uuid(call: Call) -> None:
    """Raise :class:`Invalid` for a consumer who cannot be."""
    allocations.consumer_uuid(call.params["consumer"])


async def replace(call: Call) -> Answer:
    """Replace what a consumer holds."""
    await _write(call, [update(call, call.params["consumer"], call.body)])
    return Answer(204)


async def replace_many(call: Call) -> Answer:
    """Replace what several consumers hold; all of them, or none."""
    updates = [update(call, consumer, body) for consumer, body in call.body.items()]
    await _write(call, updates)
    return Answer(204)


async def _write(call: Call, updates: Sequence[AllocationUpdate]) -> None:
    item = AllocationUpdates(updates, call.now)
    await call.write_together(
        allocations.write_together, item, line_count(updates), retry=ALLOCATIONS
    )


def line_count(updates: Iterable[AllocationUpdate]) -> int:
    """How much there is to write: each amount, and each consumer without any."""
    return sum(max(1, sum(map(len, each.resources.values()))) for each in updates)


async def delete(call: Call) -> Answer:
    """Take away all that a consumer holds."""
    consumer = call.params["consumer"]
    await call.write(lambda tx: allocations.delete(tx, consumer, call.now))
    return Answer(204)
