"""Handlers of resource properties, which are names of capabilities.

Requirements of reservations may use these names.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.leases import ResourceProperty, ResourceTypeName
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.entrypoints.api.leases.leases import second
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.systems.leases import resource_properties
from innkeeper.systems.leases.resource_properties import PropertyValues

CHANGE = "blazar:oshosts:update_resource_properties"
"""The rule for changes of the visibility.

Callers that pass this rule also see private properties.
"""


async def index(call: Call) -> Answer:
    """List properties of hosts. ``detail`` adds their values; ``all`` adds private properties."""
    with_private = _is_set(call, "all") and call.allows(CHANGE)
    found = await call.read(lambda tx: resource_properties.listing(tx, with_private=with_private))
    is_detailed = _is_set(call, "detail")
    return Answer(200, {"resource_properties": [_listed(each, is_detailed) for each in found]})


async def change(call: Call) -> Answer:
    """Make a property private or public."""
    name, is_private = call.params["name"], call.body["private"]
    changed = await call.write(
        lambda tx: resource_properties.set_private(tx, name, is_private, call.now),
        retry=WHOLE_HOSTS,
    )
    return Answer(200, {"resource_property": _shown(changed)})


def _is_set(call: Call, name: str) -> bool:
    return call.last(name) in TRUE_WORDS


def _listed(each: PropertyValues, is_detailed: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"property": each.property.name}
    if is_detailed:
        shown |= {"private": each.property.is_private, "values": list(each.values)}
    return shown


def _shown(each: ResourceProperty) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "resource_type": ResourceTypeName.HOST,
        "property_name": each.name,
        "private": each.is_private,
        "created_at": second(each.created_at),
        "updated_at": second(each.updated_at or each.created_at),
    }
