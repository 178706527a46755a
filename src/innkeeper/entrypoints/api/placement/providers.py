"""Handlers of ``/resource_providers``, which show providers, their aggregates and their usages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from innkeeper.domain.placement import Provider
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.placement.queries import provider_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import aggregates, providers, usages
from innkeeper.systems.placement.aggregates import ProviderAggregates

LINKS = ("inventories", "usages", "aggregates", "traits", "allocations")


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Options that the microversion sets for updates of providers.

    If ``only_roots_move`` is true, a provider that has a parent cannot get another parent.
    """

    only_roots_move: bool = False


def view(provider: Provider, mount: str) -> dict[str, Any]:
    """Return the JSON value of a provider."""
    own = f"{mount}/resource_providers/{provider.uuid}"
    links = [{"rel": "self", "href": own}]
    links += [{"rel": name, "href": f"{own}/{name}"} for name in LINKS]
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }


def _answer(call: Call, provider: Provider) -> Answer:
    headers = caching.headers(call, [provider.updated_at])
    return Answer(body=view(provider, call.mount), headers=headers)


async def demand_provider(call: Call) -> None:
    """Raise :class:`NotFound` for an unknown provider."""
    await call.read(lambda tx: providers.get(tx, call.params["uuid"]))


async def index(call: Call) -> Answer:
    """List resource providers."""
    query = provider_query(call)
    found = await call.read(lambda tx: providers.listing(tx, query))
    return Answer(
        body={"resource_providers": [view(each, call.mount) for each in found]},
        headers=caching.headers(call, (each.updated_at for each in found)),
    )


async def create(call: Call) -> Answer:
    """Create a resource provider."""
    name, parent = call.body["name"], call.body.get("parent_provider_uuid")
    uuid = call.body.get("uuid") or call.site.ids.uuid()
    provider = await call.write(lambda tx: providers.create(tx, uuid, name, parent, now=call.now))
    answer = _answer(call, provider)
    answer.headers["location"] = f"{call.address}/resource_providers/{provider.uuid}"
    return answer


async def show(call: Call) -> Answer:
    """Show a resource provider."""
    return _answer(call, await call.read(lambda tx: providers.get(tx, call.params["uuid"])))


async def update(call: Call) -> Answer:
    """Rename a resource provider, or move it to another parent."""
    uuid, body = call.params["uuid"], call.body
    only_roots = call.options.of(ProviderOptions).only_roots_move

    def work(tx: Tx) -> Provider:
        provider = providers.rename(tx, uuid, body["name"], call.now)
        if "parent_provider_uuid" not in body:
            return provider
        parent = body["parent_provider_uuid"]
        return providers.hang(tx, uuid, parent, call.now, only_roots=only_roots)

    return _answer(call, await call.write(work))


async def delete(call: Call) -> Answer:
    """Delete a resource provider."""
    await call.write(lambda tx: providers.delete(tx, call.params["uuid"], call.now))
    return Answer(204)


def _aggregates(call: Call, found: ProviderAggregates) -> Answer:
    body = {"aggregates": found.aggregates, "resource_provider_generation": found.generation}
    return Answer(body=body, headers=caching.headers(call))


async def list_aggregates(call: Call) -> Answer:
    """List the aggregates of a resource provider."""
    uuid = call.params["uuid"]
    return _aggregates(call, await call.read(lambda tx: aggregates.of_provider(tx, uuid)))


async def replace_aggregates(call: Call) -> Answer:
    """Replace the aggregates of a resource provider.

    If the generation in the body is null, as in requests of older versions, the provider's
    generation is neither compared nor advanced.
    """
    uuid, names = call.params["uuid"], call.body["aggregates"]
    seen = call.body["resource_provider_generation"]
    return _aggregates(
        call, await call.write(lambda tx: aggregates.replace(tx, uuid, seen, names, call.now))
    )


async def show_usages(call: Call) -> Answer:
    """Show the usages of a resource provider."""
    found = await call.read(lambda tx: usages.of_provider(tx, call.params["uuid"]))
    body = {"resource_provider_generation": found.generation, "usages": dict(found.used)}
    return Answer(body=body, headers=caching.headers(call))
