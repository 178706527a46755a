"""Handlers of ``/resource_providers/{uuid}/inventories``, the inventories of providers."""

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
    """Options that the microversion sets for writes of inventories.

    If ``leaves_some`` is true, a fully reserved inventory is rejected.
    """

    leaves_some: bool = False


def _leaves_some(call: Call) -> bool:
    return call.options.of(InventoryOptions).leaves_some


def inventory_of(body: Mapping[str, Any]) -> Inventory:
    """Convert one class's inventory in a body to an :class:`Inventory`."""
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
    """List the inventories of a resource provider."""
    return _all(call, await call.read(lambda tx: inventories.listing(tx, call.params["uuid"])))


async def create(call: Call) -> Answer:
    """Add an inventory to a resource provider."""
    uuid, name = call.params["uuid"], call.body["resource_class"]
    new, leaves_some = inventory_of(call.body), _leaves_some(call)
    shown = await call.write(
        lambda tx: inventories.add(tx, uuid, name, new, call.now, leaves_some=leaves_some)
    )
    answer = _one(call, shown)
    answer.status = 201
    answer.headers["location"] = f"{call.address}/resource_providers/{uuid}/inventories/{name}"
    return answer


async def replace(call: Call) -> Answer:
    """Replace all inventories of a resource provider."""
    uuid, seen = call.params["uuid"], call.body["resource_provider_generation"]
    new = {name: inventory_of(each) for name, each in call.body["inventories"].items()}
    leaves_some = _leaves_some(call)
    shown = await call.write(
        lambda tx: inventories.replace(tx, uuid, seen, new, call.now, leaves_some=leaves_some)
    )
    return _all(call, shown)


async def delete_all(call: Call) -> Answer:
    """Delete all inventories of a resource provider."""
    await call.write(lambda tx: inventories.remove_all(tx, call.params["uuid"], call.now))
    return Answer(204)


async def show(call: Call) -> Answer:
    """Show a resource provider's inventory of one class."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    return _one(call, await call.read(lambda tx: inventories.get(tx, uuid, name)))


async def update(call: Call) -> Answer:
    """Replace a resource provider's inventory of one class."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    seen, new = call.body["resource_provider_generation"], inventory_of(call.body)
    leaves_some = _leaves_some(call)
    shown = await call.write(
        lambda tx: inventories.change(tx, uuid, name, seen, new, call.now, leaves_some=leaves_some)
    )
    return _one(call, shown)


async def delete(call: Call) -> Answer:
    """Delete a resource provider's inventory of one class."""
    uuid, name = call.params["uuid"], call.params["resource_class"]
    await call.write(lambda tx: inventories.remove(tx, uuid, name, call.now))
    return Answer(204)
