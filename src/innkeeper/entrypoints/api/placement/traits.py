"""Handlers of ``/traits`` and of the traits of providers."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placement import NamedThing
from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import traits
from innkeeper.systems.placement.traits import ProviderTraits

FLAGS = {"true": True, "false": False}


async def index(call: Call) -> Answer:
    """List traits."""
    filters = {**_named(call.last("name")), **_associated(call.last("associated"))}
    found = await call.read(lambda tx: traits.listing(tx, **filters))
    return Answer(
        body={"traits": [each.name for each in found]},
        headers=caching.headers(call, (each.updated_at for each in found)),
    )


def _named(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    operator, separator, value = text.partition(":")
    if separator and operator == "in":
        return {"among": value.split(",")}
    if separator and operator == "startswith":
        return {"prefix": value}
    raise Invalid(
        "Badly formatted name parameter. Expected name query string parameter in form: "
        f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{text}"'
    )


def _associated(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if text.lower() not in FLAGS:
        raise Invalid(
            f'The query parameter "associated" only accepts "true" or "false". Got: "{text}"'
        )
    return {"is_used": FLAGS[text.lower()]}


def _bodiless(call: Call, status: int, found: NamedThing) -> Answer:
    return Answer(status, headers=caching.headers(call, [found.updated_at]))


async def show(call: Call) -> Answer:
    """Check that a trait exists."""
    name = call.params["name"]
    return _bodiless(call, 204, await call.read(lambda tx: traits.get(tx, name)))


async def ensure(call: Call) -> Answer:
    """Create a custom trait if it does not exist."""
    name = call.params["name"]
    found, is_new = await call.write(lambda tx: traits.ensure(tx, name, call.now))
    answer = _bodiless(call, 201 if is_new else 204, found)
    answer.headers["location"] = f"{call.address}/traits/{name}"
    return answer


async def delete(call: Call) -> Answer:
    """Delete a custom trait."""
    await call.write(lambda tx: traits.delete(tx, call.params["name"]))
    return Answer(204)


def _of_provider(call: Call, found: ProviderTraits) -> Answer:
    return Answer(
        body={
            "traits": [each.name for each in found.traits],
            "resource_provider_generation": found.generation,
        },
        headers=caching.headers(call, (each.updated_at for each in found.traits)),
    )


async def list_of_provider(call: Call) -> Answer:
    """List the traits of a resource provider."""
    uuid = call.params["uuid"]
    return _of_provider(call, await call.read(lambda tx: traits.of_provider(tx, uuid)))


async def replace_of_provider(call: Call) -> Answer:
    """Replace the traits of a resource provider."""
    uuid, body = call.params["uuid"], call.body
    seen = body["resource_provider_generation"]
    return _of_provider(
        call, await call.write(lambda tx: traits.replace(tx, uuid, seen, body["traits"], call.now))
    )


async def delete_of_provider(call: Call) -> Answer:
    """Remove all traits from a resource provider."""
    uuid = call.params["uuid"]
    await call.write(lambda tx: traits.replace(tx, uuid, None, (), call.now))
    return Answer(204)
