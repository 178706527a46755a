"""Handlers of ``/resource_classes``."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.placement import NamedThing
from innkeeper.entrypoints.api.placement import caching, faults, schemas
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.validation import Validator
from innkeeper.systems.placement import classes

NAMES = Validator(schemas.CUSTOM_CLASS, faults.body_refusal)
"""Validates names in paths, with the same error message as for names in bodies."""


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _view(call: Call, found: NamedThing) -> dict[str, Any]:
    href = call.mount + _path(found.name)
    return {"name": found.name, "links": [{"rel": "self", "href": href}]}


def _answer(call: Call, found: NamedThing) -> Answer:
    return Answer(body=_view(call, found), headers=caching.headers(call, [found.updated_at]))


async def index(call: Call) -> Answer:
    """List resource classes."""
    found = await call.read(classes.listing)
    return Answer(
        body={"resource_classes": [_view(call, each) for each in found]},
        headers=caching.headers(call, (each.updated_at for each in found)),
    )


async def create(call: Call) -> Answer:
    """Create a custom resource class."""
    name = call.body["name"]
    await call.write(lambda tx: classes.create(tx, name, call.now))
    return Answer(201, headers={"location": call.address + _path(name)})


async def show(call: Call) -> Answer:
    """Show a resource class."""
    name = call.params["name"]
    return _answer(call, await call.read(lambda tx: classes.get(tx, name)))


async def ensure(call: Call) -> Answer:
    """Create a custom resource class if it does not exist."""
    name = call.params["name"]
    NAMES.check({"name": name})
    is_new = await call.write(lambda tx: classes.ensure(tx, name, call.now))
    return Answer(201 if is_new else 204, headers={"location": call.address + _path(name)})


async def rename(call: Call) -> Answer:
    """Rename a custom resource class."""
    name, new_name = call.params["name"], call.body["name"]
    return _answer(call, await call.write(lambda tx: classes.rename(tx, name, new_name, call.now)))


async def delete(call: Call) -> Answer:
    """Delete a custom resource class."""
    await call.write(lambda tx: classes.delete(tx, call.params["name"]))
    return Answer(204)
