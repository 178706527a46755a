"""These handlers show and change the extra specs of flavors."""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.entrypoints.api.compute.flavors.flavors import visible
from innkeeper.entrypoints.api.request_checks import demand_key
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import flavors


@dataclass(frozen=True, slots=True)
class ExtraSpecOptions:
    """Options that the microversion sets for requests about extra specs."""

    is_checked: bool = True
    """Whether extra specs that the scheduler reads are validated."""


async def index(call: Call) -> Answer:
    """List a flavor's extra specs."""
    flavor = await call.read(lambda tx: visible(tx, call))
    return Answer(200, {"extra_specs": dict(flavor.extra_specs)})


async def show(call: Call) -> Answer:
    """Show one extra spec of a flavor."""
    key = call.params["key"]
    flavor = await call.read(lambda tx: visible(tx, call))
    return Answer(200, {key: flavors.extra_spec(flavor, key)})


async def create(call: Call) -> Answer:
    """Add extra specs to a flavor. A new value replaces the value of an existing key."""
    specs = call.body["extra_specs"]
    await _add(call, specs)
    return Answer(200, {"extra_specs": specs})


async def update(call: Call) -> Answer:
    """Set one extra spec of a flavor."""
    key = call.params["key"]
    demand_key(call, call.body)
    await _add(call, call.body)
    return Answer(200, {key: call.body[key]})


async def delete(call: Call) -> Answer:
    """Remove one extra spec from a flavor."""
    flavor_id, key = call.params["flavor_id"], call.params["key"]
    await call.write(lambda tx: flavors.remove_extra_spec(tx, flavor_id, key, now=call.now))
    return Answer(200)


async def _add(call: Call, specs: dict[str, str]) -> None:
    flavor_id = call.params["flavor_id"]
    is_checked = call.options.of(ExtraSpecOptions).is_checked
    await call.write(
        lambda tx: flavors.add_extra_specs(
            tx, flavor_id, specs, is_checked=is_checked, now=call.now
        )
    )
