"""``/resource_providers/{uuid}/inventories``: what providers have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from innkeeper.domain.amounts import Inventory
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import inventories
from innkeeper.systems.placement.inventories import ProviderInventories

FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


@dataclass(frozen=True, slots=True)
class InventoryOptions:
    """What older versions mean by writing inventories."""

    leaves_some: bool = False
    """Whether an inventory is refused if all of it is reserved."""


def inventory_of(body: Mapping[str, Any]) -> Inventory:
    """What a body tells of one class."""
    given = {name: body[name] for name in FIELDS if name in body}
    if "allocation_ratio" in given:
        given["allocation_ratio"] = float(given["allocation_ratio"])
    return Inventory(**given)


def _all(call: Call, shown: ProviderInventories) -> Answer:
    return Answer(
        body={
            "resource_provider_generation": shown.generation,
            "inventories": {line.class_name: asdict(line.inventory) for line in shown.lines},
        },
        headers=caching.headers(call, (line.updated_at for line in shown.lines)),
    )


def _one(call: Call, shown: ProviderInventories) -> Answer:
    (line,) = shown.lines
    return Answer(
        body={**asdict(line.inventory), "resource_provider_generation": shown.generation},
        headers=caching.headers(call, [line.updated_at]),
    )


async def index(call: Call) -> Answer:
    """Show all that a provider has."""
    return _all(call, await call.read(lambda tx: inventories.listing(tx, call.params["uuid"])))


async def create(call: Call) -> Answer:
    """Give a provider one more class."""
    uuid, name = call.params["uuid"], call.body["resource_class"]
    inventory = inventory_of(call.body)
    leaves_some = call.options.of(InventoryOptions).leaves_some
    answer = _one(
        call,
        await call.write(
            lambda tx: inventories.add(tx, uuid, name, inventory, call.now, leaves_some=leaves_some)
        ),
    )
    answer.status = 201
    answer.headers["location"] = f"{call.address}/resource_providers/{uuid}/inventories/{name}"
    return answer


async def replace(call: Call) -> Answer:
    """Replace all that a provider has."""
    uuid, seen = call.params["uuid"], call.body["resource_provider_generation"]
    wanted = {name: inventory_of(each) for name, each in call.body["inventories"].items()}
    leaves_some = call.options.of(InventoryOptions).leaves_some
    return _all(
        call,
        await call.write(
            lambda tx: inventories.replace(
                tx, uuid, seen, wanted, call.now, leaves_some=leaves_some
            )
        ),
    )


async def delete_all(call: Call) -> Answer:
    """Take everything away from a provider."""
    await call.write(lambda tx: inventories.remove_all(tx, call.params["uuid"], call.now))
    return Answer(204)


async def show(call: Call) -> Answer:
    """Show what a provider has of one class."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    return _one(call, await call.read(lambda tx: inventories.get(tx, uuid, name)))


async def update(call: Call) -> Answer:
    """Replace what a provider has of one class."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    seen = call.body["resource_provider_generation"]
    inventory = inventory_of(call.body)
    leaves_some = call.options.of(InventoryOptions).leaves_some
    return _one(
        call,
        await call.write(
            lambda tx: inventories.change(
                tx, uuid, name, seen, inventory, call.now, leaves_some=leaves_some
            )
        ),
    )


async def delete(call: Call) -> Answer:
    """Take one class away from a provider."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    await call.write(lambda tx: inventories.remove(tx, uuid, name, call.now))
    return Answer(204)
