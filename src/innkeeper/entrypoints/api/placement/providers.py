"""``/resource_providers``: the providers themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from innkeeper.domain.placement import Provider
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.placement.queries import provider_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import providers

LINKS = ("inventories", "usages", "aggregates", "traits", "allocations")


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """What older versions mean by an update of a provider."""

    only_roots_move: bool = False
    """Whether a provider that has a parent keeps it."""


def view(provider: Provider, mount: str) -> dict[str, Any]:
    """A provider as clients see it."""
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


async def must_be_there(call: Call) -> None:
    """Raise :class:`NotFound` for a provider that is not there."""
    await call.read(lambda tx: providers.get(tx, call.params["uuid"]))


async def index(call: Call) -> Answer:
    """List providers."""
    query = provider_query(call)
    found = await call.read(lambda tx: providers.listing(tx, query))
    return Answer(
        body={"resource_providers": [view(each, call.mount) for each in found]},
        headers=caching.headers(call, (each.updated_at for each in found)),
    )


async def create(call: Call) -> Answer:
    """Create a provider."""
    body = call.body
    uuid = body.get("uuid") or call.site.ids.uuid()
    provider = await call.write(
        lambda tx: providers.create(
            tx, uuid, body["name"], body.get("parent_provider_uuid"), now=call.now
        )
    )
    answer = _answer(call, provider)
    answer.headers["location"] = f"{call.address}/resource_providers/{provider.uuid}"
    return answer


async def show(call: Call) -> Answer:
    """Show a provider."""
    provider = await call.read(lambda tx: providers.get(tx, call.params["uuid"]))
    return _answer(call, provider)


async def update(call: Call) -> Answer:
    """Rename a provider, and hang it elsewhere if the body speaks of a parent."""
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
    """Delete a provider."""
    await call.write(lambda tx: providers.delete(tx, call.params["uuid"], call.now))
    return Answer(204)
