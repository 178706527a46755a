"""``/resource_providers/{uuid}/aggregates``: which aggregates providers are in."""

from __future__ import annotations

from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import aggregates
from innkeeper.systems.placement.aggregates import ProviderAggregates


def _answer(call: Call, found: ProviderAggregates) -> Answer:
    body = {"aggregates": found.aggregates, "resource_provider_generation": found.generation}
    return Answer(body=body, headers=caching.headers(call))


async def index(call: Call) -> Answer:
    """List a provider's aggregates."""
    uuid = call.params["uuid"]
    return _answer(call, await call.read(lambda tx: aggregates.of_provider(tx, uuid)))


async def replace(call: Call) -> Answer:
    """Replace a provider's aggregates. A generation of null is not compared, nor moved."""
    uuid, wanted = call.params["uuid"], call.body["aggregates"]
    seen = call.body["resource_provider_generation"]
    return _answer(
        call, await call.write(lambda tx: aggregates.replace(tx, uuid, seen, wanted, call.now))
    )
