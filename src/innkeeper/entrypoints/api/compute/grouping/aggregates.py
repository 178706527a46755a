"""Host aggregates, for operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.grouping import ZONE_KEY, Aggregate
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.pclouds import owned_aggregates
from innkeeper.entrypoints.api.pclouds.calling import context
from innkeeper.entrypoints.api.pclouds.ratio_rollout import bring_over_members
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.grouping.owned_aggregates import Owners

RULE = "os_compute_api:os-aggregates"
UNSUPPORTED = 501
_NUMBER = re.compile(r"[+-]?[0-9]{1,99}")
ROW_DIGITS_MAX = 18


def in_answer(answer: Answer) -> list[dict[str, Any]]:
    """The aggregates in an answer, one or many, for those who lower it to an older version."""
    body = answer.body
    found: list[dict[str, Any]]
    found = body["aggregates"] if "aggregates" in body else [body["aggregate"]]
    return found


async def index(call: Call) -> Answer:
    """List aggregates."""
    kept_by = _owners(call)
    found = await call.read(lambda tx: aggregates.listing(tx, kept_by))
    return Answer(200, {"aggregates": [_shown(each) for each in found]})


async def show(call: Call) -> Answer:
    """Show an aggregate."""
    row, kept_by = _row(call), _owners(call)
    return _answered(await call.read(lambda tx: aggregates.get(tx, row, kept_by)))


async def create(call: Call) -> Answer:
    """Make an aggregate without hosts."""
    wanted = call.body["aggregate"]
    name, zone = wanted["name"], wanted.get("availability_zone")
    uuid = call.site.ids.uuid()
    made = await call.write(
        lambda tx: aggregates.create(tx, uuid, name, zone, call.now), retry=WHOLE_HOSTS
    )
    shown = _shown(made)
    # Who has just made it knows that nothing is in it; no client looks for these here.
    del shown["hosts"], shown["metadata"]
    return Answer(200, {"aggregate": shown})


async def update(call: Call) -> Answer:
    """Rename an aggregate, or say which zone its hosts are in."""
    row, wanted = _row(call), call.body["aggregate"]
    name = wanted["name"].strip() if "name" in wanted else None
    zone = {ZONE_KEY: wanted[ZONE_KEY]} if ZONE_KEY in wanted else {}
    kept_by = _owners(call)

    def write(tx: Tx) -> Aggregate:
        aggregate = aggregates.rename(tx, row, name, call.now, kept_by)
        if zone:
            return aggregates.set_metadata(tx, row, zone, call.now, kept_by, deed="update")
        return aggregate

    return _answered(await call.write(write, retry=WHOLE_HOSTS))


async def delete(call: Call) -> Answer:
    """Delete an aggregate without hosts."""
    row, kept_by = _row(call), _owners(call)
    await call.write(lambda tx: aggregates.delete(tx, row, call.now, kept_by), retry=WHOLE_HOSTS)
    return Answer(200)


async def act(call: Call) -> Answer:
    """Put a host in, take one out, or set metadata; the body's one key names the action."""
    ((action, wanted),) = call.body.items()
    if action not in ACTIONS:
        raise Invalid(f"There is no such action: {action[:60]}")
    call.demand(f"{RULE}:{action}", project_id=call.context.project_id)
    row, kept_by = _row(call), _owners(call)
    act_on = ACTIONS[action]
    aggregate = await call.write(
        lambda tx: act_on(tx, row, wanted, call.now, kept_by), retry=WHOLE_HOSTS
    )
    await bring_over_members(call, aggregate)
    return _answered(aggregate)


ACTIONS: dict[str, Callable[[Tx, int, Any, datetime, Owners], Aggregate]] = {
    "add_host": lambda tx, row, wanted, now, kept_by: aggregates.add_host(
        tx, row, wanted["host"], now, kept_by
    ),
    "remove_host": lambda tx, row, wanted, now, kept_by: aggregates.remove_host(
        tx, row, wanted["host"], now, kept_by
    ),
    "set_metadata": lambda tx, row, wanted, now, kept_by: aggregates.set_metadata(
        tx, row, wanted["metadata"], now, kept_by
    ),
}
"""What can be done to an aggregate; each action has a rule of its name."""


async def cache_images(call: Call) -> Answer:
    """Refused where there are hosts: they fetch an image when they build from it."""
    row = _row(call)
    named = [each["id"] for each in call.body["cache"]]
    if len(set(named)) != len(named):
        raise Invalid("Duplicate images in request")
    aggregate = await call.read(lambda tx: aggregates.get(tx, row))
    if aggregate.hosts:
        raise HttpRefusal(
            UNSUPPORTED,
            "Images are not cached ahead here: a host fetches one when a server is built from it.",
        )
    return Answer(202)


def _owners(call: Call) -> Owners:
    """Who keeps the aggregates that are not anybody's to edit."""
    return owned_aggregates.owners(context(call))


def _row(call: Call) -> int:
    text = call.params["aggregate_id"]
    if _NUMBER.fullmatch(text) is None:
        # Clients try a name first, and go on to the list when they read this.
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
        "created_at": _moment(aggregate.created_at),
        "updated_at": _moment(aggregate.updated_at) if is_changed else None,
        "deleted_at": None,
        "deleted": False,
    }


def _moment(value: datetime) -> str:
    return value.isoformat(timespec="microseconds")
