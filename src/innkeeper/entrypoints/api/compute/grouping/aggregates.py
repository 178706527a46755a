"""These handlers list, show, create, change and delete host aggregates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.grouping import ZONE_KEY, Aggregate
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.pclouds.calling import context
from innkeeper.entrypoints.api.pclouds.ratio_rollout import roll_out_edited
from innkeeper.entrypoints.api.request_checks import unknown_action
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.grouping.owned_aggregates import Owners
from innkeeper.systems.pclouds import aggregate_edits

RULE = "os_compute_api:os-aggregates"
UNSUPPORTED = 501
_NUMBER = re.compile(r"[+-]?[0-9]{1,99}")
ROW_DIGITS_MAX = 18
ALLOWED = "pcloud-tenant"
"""The value of a metadata key that lets a project use a pcloud."""


async def index(call: Call) -> Answer:
    """List aggregates."""
    owners = _owners(call)
    found = await call.read(lambda tx: aggregates.listing(tx, owners))
    return Answer(200, {"aggregates": [_shown(each) for each in found]})


async def show(call: Call) -> Answer:
    """Show an aggregate."""
    row, owners = _row(call), _owners(call)
    return _answered(await call.read(lambda tx: aggregates.get(tx, row, owners)))


async def create(call: Call) -> Answer:
    """Create an aggregate without hosts."""
    body = call.body["aggregate"]
    name, zone = body["name"], body.get("availability_zone")
    uuid = call.site.ids.uuid()
    created = await call.write(
        lambda tx: aggregates.create(tx, uuid, name, zone, call.now), retry=WHOLE_HOSTS
    )
    shown = _shown(created)
    # Both fields are empty, and Nova omits them from this answer.
    del shown["hosts"], shown["metadata"]
    return Answer(200, {"aggregate": shown})


async def update(call: Call) -> Answer:
    """Rename an aggregate, or set its availability zone."""
    row, body, owners = _row(call), call.body["aggregate"], _owners(call)
    name = body["name"].strip() if "name" in body else None
    zone = {ZONE_KEY: body[ZONE_KEY]} if ZONE_KEY in body else {}

    def write(tx: Tx) -> Aggregate:
        aggregate = aggregates.rename(tx, row, name, call.now, owners)
        if zone:
            return aggregates.set_metadata(tx, row, zone, call.now, owners, deed="update")
        return aggregate

    return _answered(await call.write(write, retry=WHOLE_HOSTS))


async def delete(call: Call) -> Answer:
    """Delete an aggregate without hosts."""
    row, owners = _row(call), _owners(call)
    await call.write(lambda tx: aggregates.delete(tx, row, call.now, owners), retry=WHOLE_HOSTS)
    return Answer(200)


async def act(call: Call) -> Answer:
    """Add a host to an aggregate, remove a host, or set metadata."""
    ((action, arguments),) = call.body.items()
    if action not in ACTIONS:
        raise unknown_action(action[:60])
    call.demand(f"{RULE}:{action}", project_id=call.context.project_id)
    row, owners = _row(call), _owners(call)
    carry_out, argument = ACTIONS[action]
    value = arguments[argument]
    aggregate = await call.write(
        lambda tx: carry_out(tx, row, value, call.now, owners), retry=WHOLE_HOSTS
    )
    await roll_out_edited(call, aggregate)
    return _answered(aggregate)


ACTIONS: dict[str, tuple[Callable[[Tx, int, Any, datetime, Owners], Aggregate], str]] = {
    "add_host": (aggregates.add_host, "host"),
    "remove_host": (aggregates.remove_host, "host"),
    "set_metadata": (aggregates.set_metadata, "metadata"),
}
"""Each action's function and the name of the function's argument. The name of an action also ends
the name of its policy rule."""


async def cache_images(call: Call) -> Answer:
    """Refuse to cache images on hosts (501). For an aggregate without hosts, do nothing (202)."""
    row = _row(call)
    image_ids = [each["id"] for each in call.body["cache"]]
    if len(set(image_ids)) != len(image_ids):
        raise Invalid("Duplicate images in request")
    aggregate = await call.read(lambda tx: aggregates.get(tx, row))
    if aggregate.hosts:
        raise HttpRefusal(
            UNSUPPORTED,
            "Images cannot be cached in advance: a host fetches an image when it builds a server.",
        )
    return Answer(202)


def _owners(call: Call) -> Owners:
    """Return the objects that handle edits of the aggregates of pclouds and host flavors."""
    return aggregate_edits.owners(context(call), ALLOWED)


def _row(call: Call) -> int:
    text = call.params["aggregate_id"]
    if _NUMBER.fullmatch(text) is None:
        # Some clients pass a name as the id, and search the list after this error.
        raise Invalid("Invalid input received: id must be an integer")
    if len(text) > ROW_DIGITS_MAX:
        raise NotFound(f"Aggregate {text} could not be found.")
    return int(text)


def _answered(aggregate: Aggregate) -> Answer:
    return Answer(200, {"aggregate": _shown(aggregate)})


def _shown(aggregate: Aggregate) -> dict[str, Any]:
    is_changed = aggregate.updated_at != aggregate.created_at
    return {
        "id": aggregate.id,
        "uuid": aggregate.uuid,
        "name": aggregate.name,
        "hosts": list(aggregate.hosts),
        "metadata": dict(aggregate.metadata),
        "availability_zone": aggregate.availability_zone,
        "created_at": micros(aggregate.created_at),
        "updated_at": micros(aggregate.updated_at) if is_changed else None,
        "deleted_at": None,
        "deleted": False,
    }
